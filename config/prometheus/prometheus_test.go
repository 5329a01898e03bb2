// Package prometheus_test holds the alert rules to their tests, which promtool runs, and to the runbook.
package prometheus_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/hduolab/quell/controller/stormwatch"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const runbook = "https://github.com/hduolab/quell/blob/main/docs/runbook.md#"

// rules are the part of a PrometheusRule that Prometheus itself reads.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert       string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// ruleTests are the part of promtool's files that says what fires.
type ruleTests struct {
	Tests []struct {
		Name           string
		AlertRuleTests []struct {
			Alertname string
			ExpAlerts []struct {
				ExpLabels map[string]string `json:"exp_labels"`
			} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	}
}

func TestRules(t *testing.T) {
	promtool := findPromtool(t)
	dir := t.TempDir()
	raw, err := yaml.Marshal(manifest(t)["spec"])
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "rules.yaml"), raw)
	run(t, promtool, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(dir, "rules.yaml"))
	for _, path := range testFiles(t) {
		copied := filepath.Join(dir, filepath.Base(path))
		write(t, copied, read(t, path))
		run(t, promtool, "test", "rules", copied)
	}
}

// The tests are of use only as far as each alert is seen to fire, with each of its severities and causes, and to stay silent.
func TestEachAlertIsTested(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, path := range testFiles(t) {
		var file ruleTests
		if err := yaml.Unmarshal(read(t, path), &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, test := range file.Tests {
			for _, check := range test.AlertRuleTests {
				for _, alert := range check.ExpAlerts {
					fires[variant(check.Alertname, alert.ExpLabels)] = true
				}
				if len(check.ExpAlerts) == 0 {
					silent[check.Alertname] = true
				}
			}
		}
	}
	each(t, func(alert string, labels, _ map[string]string) {
		if v := variant(alert, labels); !fires[v] {
			t.Errorf("no test has %s fire", v)
		}
		if !silent[alert] {
			t.Errorf("no test wants %s to be silent", alert)
		}
	})
}

func TestEachAlertLeadsToTheRunbook(t *testing.T) {
	each(t, func(alert string, labels, annotations map[string]string) {
		for _, name := range []string{"summary", "description"} {
			if !strings.HasSuffix(annotations[name], ".") && !strings.Contains(annotations[name], "kubectl") {
				t.Errorf("%s: %s %q is no sentence", alert, name, annotations[name])
			}
		}
		if want := runbook + strings.ToLower(alert); annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", alert, annotations["runbook_url"], want)
		}
		if !slices.Contains([]string{"warning", "critical"}, labels["severity"]) {
			t.Errorf("%s: severity is %q", alert, labels["severity"])
		}
	})
}

// Values that rules and dashboard ask for are ones that the code gives: a label with a value that never comes is no error to anybody.
func TestValuesExist(t *testing.T) {
	outcomes := []ssa.Outcome{
		ssa.Unchanged, ssa.Created, ssa.Applied, ssa.NoOp, ssa.Gone, ssa.Replaced, ssa.DoesNotStick, ssa.Contended, ssa.SelfChurn,
		ssa.Throttled, ssa.Settling, ssa.Conflicted, ssa.Stale, "Error",
	}
	states := []live.State{
		live.Starting, live.Watching, live.Forbidden, live.NotFound, live.Failing, stormwatch.NotWatchable, stormwatch.ClusterScoped,
	}
	known := map[string][]string{"cause": words(outcomes), "outcome": words(outcomes), "state": words(states), "name": {"quell-manager"}}
	matcher := regexp.MustCompile(`\b(cause|outcome|state|name)(?:=|!=|=~|!~)\\?"([^"\\]+)`)
	found := 0
	for _, path := range []string{"rules.yaml", "dashboard.json"} {
		for _, m := range matcher.FindAllStringSubmatch(string(read(t, path)), -1) {
			for value := range strings.SplitSeq(m[2], "|") {
				found++
				if !slices.Contains(known[m[1]], value) {
					t.Errorf("%s: no %s is ever %q", path, m[1], value)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("found %d values only", found)
	}
}

func words[T ~string](values []T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

// The ServiceMonitor selects the Service, which selects the Pods of config/manager and names the job that the rules ask for.
func TestScrapeChain(t *testing.T) {
	var monitor struct {
		Metadata metav1.ObjectMeta
		Spec     struct {
			Selector  metav1.LabelSelector
			Endpoints []struct{ Port, Scheme string }
		}
	}
	var service corev1.Service
	var manager appsv1.Deployment
	for path, into := range map[string]any{"service_monitor.yaml": &monitor, "service.yaml": &service, "../manager/deployment.yaml": &manager} {
		if err := yaml.Unmarshal(read(t, path), into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	pod, port, endpoint := manager.Spec.Template, service.Spec.Ports[0], monitor.Spec.Endpoints[0]
	listens := slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal && p.ContainerPort == port.Port
	})
	switch {
	case !selects(monitor.Spec.Selector.MatchLabels, service.Labels) || monitor.Metadata.Namespace != service.Namespace:
		t.Error("the ServiceMonitor does not select the Service")
	case !selects(service.Spec.Selector, pod.Labels) || service.Namespace != manager.Namespace:
		t.Error("the Service does not select the manager's Pods")
	case endpoint.Port != port.Name || !listens:
		t.Errorf("endpoint %s, port %s and the manager's ports do not fit", endpoint.Port, port.Name)
	case endpoint.Scheme != "https" || slices.Contains(pod.Spec.Containers[0].Args, "--metrics-insecure"):
		t.Error("the manager speaks TLS, and the ServiceMonitor does not")
	case !strings.Contains(string(read(t, "rules.yaml")), `up{job="`+service.Name+`"}`):
		t.Errorf("the rules do not ask for job %s", service.Name)
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

// variant tells rules of one alert apart.
func variant(alert string, labels map[string]string) string {
	words := []string{alert, labels["severity"]}
	if cause := labels["cause"]; slices.Contains([]string{"QuellStormWatchBlind", "QuellOperatorDown"}, alert) {
		words = append(words, cause)
	}
	return strings.Join(words, " ")
}

func each(t *testing.T, check func(alert string, labels, annotations map[string]string)) {
	t.Helper()
	raw, err := yaml.Marshal(manifest(t)["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, group := range r.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				count++
				check(rule.Alert, rule.Labels, rule.Annotations)
			}
		}
	}
	if count == 0 {
		t.Fatal("rules.yaml has no alert")
	}
}

func manifest(t *testing.T) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal(read(t, "rules.yaml"), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// findPromtool looks where the Makefile says, then in PATH.
func findPromtool(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("PROMTOOL"), "promtool"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const how = "promtool is missing: run make verify-alerts, or install Prometheus and put its promtool into PATH"
	if os.Getenv("CI") == "true" {
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}

func testFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("tests/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tests of the rules: %v", err)
	}
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
