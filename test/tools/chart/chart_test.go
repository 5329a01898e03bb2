package chart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// keepPolicy is Helm's own annotation, the one thing that the chart has and config/ has not.
const keepPolicy = "helm.sh/resource-policy"

var (
	on         = values{"enabled": true}
	monitoring = values{"serviceMonitor": on, "prometheusRule": on, "dashboard": on}
	rights     = values{"configRoll": values{"configMaps": true, "secrets": true}, "stormWatch": values{"workloads": true}}
	oneShard   = []any{values{"name": "eu-1"}}
)

func TestRendersWhatKustomizeDoes(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		set       values
		folders   []string
	}{
		"by default":      {namespace, nil, []string{"default"}},
		"with monitoring": {namespace, monitoring, []string{"default", "prometheus"}},
		"with a shard":    {namespace, values{"shards": oneShard}, []string{"default", "shard"}},
		"with a shard that is scraped": {
			namespace, values{"serviceMonitor": on, "prometheusRule": on, "dashboard": on, "shards": oneShard}, []string{"default", "prometheus", "shard", "prometheus/shard"},
		},
		"in another namespace": {"elsewhere", monitoring, []string{"default", "prometheus"}},
		"with rights":          {namespace, values{"rights": rights}, []string{"default", "stormwatch", "configroll"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustRender(t, test.namespace, test.set)
			want := kustomize(t, test.folders, test.namespace, "eu-1")
			for _, object := range got {
				dropKeepPolicy(object)
			}
			compare(t, got, want)
			t.Logf("%d objects", len(got))
		})
	}
}

func dropKeepPolicy(object map[string]any) {
	if annotations, has := object["metadata"].(map[string]any)["annotations"].(map[string]any); has {
		delete(annotations, keepPolicy)
	}
}

func compare(t *testing.T, got, want objects) {
	t.Helper()
	for name, object := range want {
		if got[name] == nil {
			t.Errorf("the chart lacks %s", name)
		} else if diff := cmp.Diff(object, got[name]); diff != "" {
			t.Errorf("%s differs (- kustomize, + chart):\n%s", name, diff)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("the chart has %s, and kustomize has not", name)
		}
	}
}

func text(object any) []byte {
	raw, err := yaml.Marshal(object)
	if err != nil {
		return []byte(err.Error())
	}
	return raw
}

// What the chart has from config/ is copied there by make chart.
func TestFilesAreFresh(t *testing.T) {
	root := filepath.Join(config, "chart", "files")
	count := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		count++
		if source := filepath.Join(config, relative); string(read(t, path)) != string(read(t, source)) {
			t.Errorf("%s is stale: run make chart", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"crd", "rbac", "configroll", "stormwatch", "prometheus"} {
		sources, err := filepath.Glob(filepath.Join(config, folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			if _, err := os.Stat(filepath.Join(root, folder, filepath.Base(source))); err != nil {
				t.Errorf("the chart lacks %s: run make chart", source)
			}
		}
	}
	if count < 15 {
		t.Errorf("found %d files only", count)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v: run make chart", err)
	}
	return raw
}

func TestDefinitions(t *testing.T) {
	for name, test := range map[string]struct {
		set          values
		found, keeps bool
	}{
		"kept":           {nil, true, true},
		"not kept":       {values{"crds": values{"keep": false}}, true, false},
		"from elsewhere": {values{"crds": values{"install": false}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := mustRender(t, namespace, test.set)
			for _, crd := range []string{"apps.quell.dev", "stormwatches.quell.dev"} {
				definition, found := get[apiextensionsv1.CustomResourceDefinition](t, all, "CustomResourceDefinition", crd)
				if found != test.found || (definition.Annotations[keepPolicy] == "keep") != test.keeps {
					t.Errorf("%s: found %t, annotations %v", crd, found, definition.Annotations)
				}
			}
		})
	}
	// Only definitions outlive their release: a kept Deployment would go on without rights.
	for name, object := range mustRender(t, namespace, nil) {
		annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
		if _, kept := annotations[keepPolicy]; kept && object["kind"] != "CustomResourceDefinition" {
			t.Errorf("an uninstall leaves %s", name)
		}
	}
}

func TestPodOptions(t *testing.T) {
	all := mustRender(t, namespace, values{
		"image":                     values{"repository": "example.test/team/quell", "tag": "v1.2.3", "pullPolicy": "Always"},
		"imagePullSecrets":          []any{values{"name": "registry"}},
		"replicas":                  3,
		"maxConcurrentReconciles":   2000000,
		"extraArgs":                 []any{"--zap-log-level=debug"},
		"resources":                 values{"limits": values{"memory": "1Gi"}},
		"nodeSelector":              values{"kubernetes.io/os": "linux"},
		"tolerations":               []any{values{"key": "dedicated", "operator": "Exists"}},
		"affinity":                  values{"podAntiAffinity": values{}},
		"topologySpreadConstraints": []any{values{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}},
		"priorityClassName":         "system-cluster-critical",
		"podLabels":                 values{"team": "a", "app.kubernetes.io/name": "mine"},
		"podAnnotations":            values{"note": "b"},
	})
	d, _ := get[appsv1.Deployment](t, all, "Deployment", "quell-manager")
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	for what, is := range map[string]bool{
		"image":                     container.Image == "example.test/team/quell:v1.2.3" && container.ImagePullPolicy == corev1.PullAlways,
		"imagePullSecrets":          reflect.DeepEqual(pod.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}}),
		"replicas":                  *d.Spec.Replicas == 3,
		"maxConcurrentReconciles":   slices.Contains(container.Args, "--max-concurrent-reconciles=2000000"),
		"extraArgs":                 slices.Contains(container.Args, "--zap-log-level=debug"),
		"limits":                    container.Resources.Limits.Memory().String() == "1Gi",
		"requests stay":             container.Resources.Requests.Cpu().String() == "50m",
		"nodeSelector":              pod.NodeSelector["kubernetes.io/os"] == "linux",
		"tolerations":               len(pod.Tolerations) == 1 && pod.Tolerations[0].Key == "dedicated",
		"affinity":                  pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil,
		"topologySpreadConstraints": len(pod.TopologySpreadConstraints) == 1 && pod.TopologySpreadConstraints[0].TopologyKey == "zone",
		"priorityClassName":         pod.PriorityClassName == "system-cluster-critical",
		"podLabels":                 d.Spec.Template.Labels["team"] == "a",
		"podAnnotations":            d.Spec.Template.Annotations["note"] == "b",
		"selector":                  selects(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels),
	} {
		if !is {
			t.Errorf("%s: %s", what, text(d))
		}
	}
	all = mustRender(t, namespace, values{"image": values{"digest": "sha256:" + strings.Repeat("0", 64)}})
	d, _ = get[appsv1.Deployment](t, all, "Deployment", "quell-manager")
	if want := "quell-manager@sha256:" + strings.Repeat("0", 64); d.Spec.Template.Spec.Containers[0].Image != want {
		t.Errorf("image is %q, want %q", d.Spec.Template.Spec.Containers[0].Image, want)
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// Each Deployment selects its own Pods alone, and may use the Lease of its shard alone.
func TestShards(t *testing.T) {
	all := mustRender(t, namespace, values{
		"shards": []any{
			values{"name": "eu-1", "replicas": 0, "maxConcurrentReconciles": 9, "resources": values{"limits": values{"memory": "2Gi"}}},
			values{"name": "us-1"},
		},
		"podDisruptionBudget": values{"enabled": true, "maxUnavailable": "50%"},
		"serviceMonitor":      on,
		"networkPolicy":       on,
	})
	names := []string{"quell-manager", "quell-manager-eu-1", "quell-manager-us-1"}
	pods := map[string]map[string]string{}
	for _, name := range names {
		d, _ := get[appsv1.Deployment](t, all, "Deployment", name)
		pods[name] = d.Spec.Template.Labels
	}
	policy, _ := get[networkingv1.NetworkPolicy](t, all, "NetworkPolicy", "quell-manager")
	monitor, _ := get[monitoringv1.ServiceMonitor](t, all, "ServiceMonitor", "quell-manager")
	for _, name := range names {
		d, _ := get[appsv1.Deployment](t, all, "Deployment", name)
		budget, _ := get[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget", name)
		service, _ := get[corev1.Service](t, all, "Service", name+"-metrics")
		role, _ := get[rbacv1.Role](t, all, "Role", name+"-leader-election")
		for other, labels := range pods {
			for what, selector := range map[string]map[string]string{
				"Deployment": d.Spec.Selector.MatchLabels, "PodDisruptionBudget": budget.Spec.Selector.MatchLabels, "Service": service.Spec.Selector,
			} {
				if selects(selector, labels) != (name == other) {
					t.Errorf("%s %s and the Pods of %s: %v, %v", what, name, other, selector, labels)
				}
			}
		}
		if budget.Spec.MaxUnavailable.String() != "50%" {
			t.Errorf("%s: maxUnavailable is %s", name, budget.Spec.MaxUnavailable)
		}
		if !selects(policy.Spec.PodSelector.MatchLabels, pods[name]) {
			t.Errorf("the NetworkPolicy does not select the Pods of %s", name)
		}
		if !selects(monitor.Spec.Selector.MatchLabels, service.Labels) {
			t.Errorf("the ServiceMonitor does not select Service %s", service.Name)
		}
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.ResourceNames, name) }) {
			t.Errorf("%s may not use its Lease: %v", name, role.Rules)
		}
	}
	eu, _ := get[appsv1.Deployment](t, all, "Deployment", "quell-manager-eu-1")
	container := eu.Spec.Template.Spec.Containers[0]
	if *eu.Spec.Replicas != 0 || container.Resources.Limits.Memory().String() != "2Gi" ||
		!slices.Contains(container.Args, "--max-concurrent-reconciles=9") || !slices.Contains(container.Args, "--shard=eu-1") {
		t.Errorf("a shard's own values are not taken: %s", text(eu))
	}
}

func TestNetworkPolicy(t *testing.T) {
	peer := values{"namespaceSelector": values{"matchLabels": values{"kubernetes.io/metadata.name": "monitoring"}}}
	all := mustRender(t, namespace, values{"networkPolicy": values{"enabled": true, "metricsFrom": []any{peer}, "apiServerPorts": []any{8443}}})
	policy, _ := get[networkingv1.NetworkPolicy](t, all, "NetworkPolicy", "quell-manager")
	d, _ := get[appsv1.Deployment](t, all, "Deployment", "quell-manager")
	in, out := policy.Spec.Ingress[0], policy.Spec.Egress[0]
	isPort := func(p corev1.ContainerPort) bool { return p.Name == in.Ports[0].Port.StrVal }
	switch {
	case len(policy.Spec.Ingress) != 1 || len(in.From) != 1 || in.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring":
		t.Errorf("ingress: %s", text(policy))
	case !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, isPort):
		t.Error("the manager has no port of that name")
	case len(policy.Spec.Egress) != 1 || len(out.Ports) != 1 || out.Ports[0].Port.IntVal != 8443:
		t.Errorf("egress: %s", text(policy))
	}
}

func TestMonitoringLabels(t *testing.T) {
	labelled := values{"enabled": true, "labels": values{"release": "stack"}}
	all := mustRender(t, namespace, values{"serviceMonitor": labelled, "prometheusRule": labelled, "dashboard": labelled})
	monitor, _ := get[monitoringv1.ServiceMonitor](t, all, "ServiceMonitor", "quell-manager")
	rule, _ := get[monitoringv1.PrometheusRule](t, all, "PrometheusRule", "quell")
	dashboard, _ := get[corev1.ConfigMap](t, all, "ConfigMap", "quell-dashboard")
	for what, labels := range map[string]map[string]string{"ServiceMonitor": monitor.Labels, "PrometheusRule": rule.Labels, "dashboard": dashboard.Labels} {
		if labels["release"] != "stack" || labels["app.kubernetes.io/name"] != "quell" {
			t.Errorf("%s has labels %v", what, labels)
		}
	}
	if dashboard.Labels["grafana_dashboard"] != "1" || !json.Valid([]byte(dashboard.Data["quell.json"])) {
		t.Errorf("dashboard: labels %v", dashboard.Labels)
	}
}

func TestRights(t *testing.T) {
	all := mustRender(t, namespace, values{"rights": values{"stormWatch": values{"everything": true, "groups": []any{"a.example", "b.example", "a.example"}}}})
	collector, _ := get[rbacv1.ClusterRole](t, all, "ClusterRole", "quell-stormwatch")
	for _, name := range []string{"everything", "a.example", "b.example"} {
		role, found := get[rbacv1.ClusterRole](t, all, "ClusterRole", "quell-stormwatch-"+name)
		if !found || !selects(collector.AggregationRule.ClusterRoleSelectors[0].MatchLabels, role.Labels) {
			t.Errorf("the operator has no right from %s: %s", name, text(role))
		}
	}
	if _, found := get[rbacv1.ClusterRole](t, mustRender(t, namespace, nil), "ClusterRole", "quell-stormwatch-everything"); found {
		t.Error("the right to read everything is given by default")
	}
}

func TestNamespace(t *testing.T) {
	all := mustRender(t, "shared", values{"namespace": values{"create": false}})
	for name, object := range all {
		if object["kind"] == "Namespace" || strings.Contains(string(text(object)), namespace) {
			t.Errorf("%s names a namespace that is not the release's", name)
		}
	}
}

// The names of further shards and of values nobody has told of are wrong in ways that only show later.
func TestWrongValues(t *testing.T) {
	for field, set := range map[string]values{
		"replicaCount":                 {"replicaCount": 2},
		"/replicas":                    {"replicas": "two"},
		"/image/tag":                   {"image": values{"tag": 1.5}},
		"/image/digest":                {"image": values{"digest": "0123"}},
		"/image/pullPolicy":            {"image": values{"pullPolicy": "Sometimes"}},
		"/image/repository":            {"image": values{"repository": "a b"}},
		"registry":                     {"image": values{"registry": "example.test"}},
		"/imagePullSecrets/0":          {"imagePullSecrets": []any{"registry"}},
		"/maxConcurrentReconciles":     {"maxConcurrentReconciles": -1},
		"/extraArgs/0":                 {"extraArgs": []any{"debug"}},
		"limit":                        {"resources": values{"limit": values{"memory": "1Gi"}}},
		"/resources/limits/memory":     {"resources": values{"limits": values{"memory": "1 GiB"}}},
		"/nodeSelector":                {"nodeSelector": []any{"a"}},
		"/tolerations":                 {"tolerations": values{"key": "a"}},
		"antiAffinity":                 {"affinity": values{"antiAffinity": values{}}},
		"/topologySpreadConstraints":   {"topologySpreadConstraints": values{}},
		"/priorityClassName":           {"priorityClassName": 5},
		"/podLabels/a":                 {"podLabels": values{"a": 1}},
		"/podAnnotations/a":            {"podAnnotations": values{"a": true}},
		"/shards/0":                    {"shards": []any{"eu-1"}},
		"/shards/0/name":               {"shards": []any{values{"name": "EU"}}},
		"'name'":                       {"shards": []any{values{"replicas": 2}}},
		`shards: the name "eu-1"`:      {"shards": []any{values{"name": "eu-1"}, values{"name": "eu-1"}}},
		"/namespace/create":            {"namespace": values{"create": "no"}},
		"/crds/keep":                   {"crds": values{"keep": "yes"}},
		"/crds/install":                {"crds": values{"install": 1}},
		"/rights/stormWatch/groups/0":  {"rights": values{"stormWatch": values{"groups": []any{"*"}}}},
		"/rights/configRoll/secrets":   {"rights": values{"configRoll": values{"secrets": "true"}}},
		"/podDisruptionBudget/maxUna":  {"podDisruptionBudget": values{"maxUnavailable": "half"}},
		"minAvailable":                 {"podDisruptionBudget": values{"minAvailable": 1}},
		"/networkPolicy/apiServerPort": {"networkPolicy": values{"apiServerPorts": []any{0}}},
		"/networkPolicy/metricsFrom/0": {"networkPolicy": values{"metricsFrom": []any{values{}}}},
		"/serviceMonitor/enabled":      {"serviceMonitor": values{"enabled": "on"}},
		"interval":                     {"serviceMonitor": values{"interval": "30s"}},
		"/prometheusRule/labels/a":     {"prometheusRule": values{"labels": values{"a": 1}}},
		"/dashboard/enabled":           {"dashboard": values{"enabled": 1}},
		"'namespace'":                  {"dashboard": values{"namespace": "grafana"}},
	} {
		if _, err := render(t, namespace, set); err == nil {
			t.Errorf("%v is not refused", set)
		} else if !strings.Contains(err.Error(), field) {
			t.Errorf("%v: the error does not name %s: %v", set, field, err)
		}
	}
}

// A chart that has this one as a dependency passes these on.
func TestAsDependency(t *testing.T) {
	compare(t, mustRender(t, namespace, values{"enabled": true, "global": values{"team": "a"}}), mustRender(t, namespace, nil))
}

// values.yaml is where people look for what can be set.
func TestEachValueIsInTheFile(t *testing.T) {
	var schema node
	var defaults values
	if err := json.Unmarshal(read(t, filepath.Join(config, "chart", "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(config, "chart", "values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global")
	delete(schema.Properties, "enabled")
	schema.walk(t, "", defaults)
}

type node struct{ Properties map[string]node }

func (n node) walk(t *testing.T, path string, defaults values) {
	for name, property := range n.Properties {
		value, has := defaults[name]
		if !has {
			t.Errorf("values.yaml does not have %s%s", path, name)
		}
		if nested, _ := value.(values); len(nested) > 0 { // what is empty by default holds whatever people put there
			property.walk(t, path+name+".", nested)
		}
	}
}
