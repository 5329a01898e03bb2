package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

// TestServerAgrees sends the same random sequences of requests to the model and to a real API server, and compares every answer.
// QUELL_MODEL_SEED chooses other sequences (default 1), QUELL_MODEL_SEQUENCES how many (default 50).
func TestServerAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	c, err := localcluster.Start(t.Context(), localcluster.Options{ControlPlaneOnly: true, Log: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(c.Stop()).To(Succeed()) })
	k := appKinds(t)
	config := c.Config()
	config.QPS = -1
	g.Expect(apiextensionsv1.AddToScheme(k.scheme)).To(Succeed())
	real, err := client.New(config, client.Options{Scheme: k.scheme})
	g.Expect(err).NotTo(HaveOccurred())
	install(t, real)

	seed, sequences := uint64(1), 50
	if s := os.Getenv("QUELL_MODEL_SEED"); s != "" {
		seed, err = strconv.ParseUint(s, 10, 64)
		g.Expect(err).NotTo(HaveOccurred())
	}
	if s := os.Getenv("QUELL_MODEL_SEQUENCES"); s != "" {
		sequences, err = strconv.Atoi(s)
		g.Expect(err).NotTo(HaveOccurred())
	}
	t.Logf("QUELL_MODEL_SEED=%d", seed)
	count := map[string]int{}
	for i := range sequences {
		d := duel{t: t, real: real, model: NewServer(k, time.Now), name: fmt.Sprintf("x%d", i), random: rand.New(rand.NewPCG(seed, uint64(i))), count: count}
		d.fight(8)
	}
	t.Logf("%d sequences, answers by kind: %v", sequences, count)
	for _, answer := range []string{"200 wrote", "200 no change", "409", "404", "422", "500"} {
		g.Expect(count[answer]).To(BeNumerically(">", 0), "the sequences have to bring about every answer: %s", answer)
	}
}

func install(t *testing.T, real client.Client) {
	g := NewWithT(t)
	raw, err := os.ReadFile("../../config/crd/quell.dev_apps.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(raw, crd)).To(Succeed())
	g.Expect(real.Create(t.Context(), crd)).To(Succeed())
	g.Eventually(func() error { return real.List(t.Context(), &quellv1alpha1.AppList{}) }, time.Minute).Should(Succeed())
}

// duel is one sequence of requests about one object, at both servers.
type duel struct {
	t      *testing.T
	real   client.Client
	model  *Server
	name   string
	kind   schema.GroupVersionKind
	random *rand.Rand
	count  map[string]int
	done   []string
}

// deed is one request: it reads what it needs, and returns what it sent when it is asked to answer with the object.
type deed struct {
	what string
	do   func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error)
}

func (d *duel) fight(n int) {
	d.kind = []schema.GroupVersionKind{
		quellv1alpha1.SchemeGroupVersion.WithKind("App"), quellv1alpha1.SchemeGroupVersion.WithKind("App"),
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "ConfigMap"},
	}[d.random.IntN(4)]
	for range n {
		deed := d.choose()
		d.done = append(d.done, deed.what)
		before := [2]string{d.version(d.real), d.version(d.model.Client())}
		realAnswer, realErr := deed.do(d.t.Context(), d.real)
		modelAnswer, modelErr := deed.do(d.t.Context(), d.model.Client())
		d.compare("answer", d.picture(realAnswer, realErr), d.picture(modelAnswer, modelErr))
		after := [2]string{d.version(d.real), d.version(d.model.Client())}
		d.compare("whether the version moved", map[string]any{"moved": before[0] != after[0]}, map[string]any{"moved": before[1] != after[1]})
		d.note(modelErr, before[1] != after[1])
		realAnswer, realErr = d.live(d.real)
		modelAnswer, modelErr = d.live(d.model.Client())
		d.compare("object", d.picture(realAnswer, realErr), d.picture(modelAnswer, modelErr))
	}
}

func (d *duel) note(err error, moved bool) {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		d.count[strconv.Itoa(int(status.Status().Code))]++
	case moved:
		d.count["200 wrote"]++
	default:
		d.count["200 no change"]++
	}
}

func (d *duel) compare(what string, real, model map[string]any) {
	d.t.Helper()
	wanted, got := map[string]string{}, map[string]string{}
	flatten("", real, wanted)
	flatten("", model, got)
	maps.DeleteFunc(wanted, func(path, value string) bool {
		same := got[path] == value
		if same {
			delete(got, path)
		}
		return same
	})
	NewWithT(d.t).Expect(got).To(Equal(wanted), "%s: of the real server (wanted) and of the model this differs, after:\n%s", what, strings.Join(d.done, "\n"))
}

// flatten gives every leaf of a value under its path.
func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		into[path] = "a map"
		for name, v := range value {
			flatten(path+"."+name, v, into)
		}
	case []any:
		into[path] = fmt.Sprintf("%d items", len(value))
		for i, v := range value {
			flatten(fmt.Sprintf("%s[%d]", path, i), v, into)
		}
	default:
		into[path] = fmt.Sprint(value)
	}
}

func (d *duel) live(c client.Client) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(d.kind)
	return u, c.Get(d.t.Context(), client.ObjectKey{Namespace: namespace, Name: d.name}, u)
}

func (d *duel) version(c client.Client) string {
	u, err := d.live(c)
	if err != nil {
		return ""
	}
	return string(u.GetUID()) + "/" + u.GetResourceVersion()
}

// picture is what of an answer has to be the same: all but times, numbers of versions, UIDs and texts of errors.
func (d *duel) picture(u *unstructured.Unstructured, err error) map[string]any {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		p := map[string]any{"code": status.Status().Code, "reason": string(status.Status().Reason)}
		if details := status.Status().Details; details != nil {
			var causes []string
			for _, c := range details.Causes {
				if c.Field == "<nil>" {
					continue // rules in CEL were not checked, which the model never does
				}
				causes = append(causes, string(c.Type)+" "+c.Field)
			}
			sort.Strings(causes)
			p["causes"] = slices.Compact(causes) // the API server repeats some
			p["about"] = fmt.Sprintf("%s %s %s", details.Group, details.Kind, details.Name)
		}
		return p
	}
	if err != nil || u == nil {
		return map[string]any{"error": fmt.Sprint(err)}
	}
	u = u.DeepCopy()
	var entries []string
	for _, e := range u.GetManagedFields() {
		entries = append(entries, fmt.Sprintf("%s %s %s %s %s", e.Manager, e.Operation, e.APIVersion, e.Subresource, e.FieldsV1.GetRawString()))
	}
	sort.Strings(entries)
	u.SetManagedFields(nil)
	deleting := u.GetDeletionTimestamp() != nil
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return map[string]any{"object": u.Object, "managedFields": entries, "deleting": deleting}
}

// choose makes up the next request; everything random about it is decided here.
func (d *duel) choose() deed {
	if len(d.done) == 0 && d.random.IntN(4) > 0 {
		return d.apply("kubectl", "", d.content(), false, "")
	}
	managers := []string{"one", "two", "three"}
	manager := managers[d.random.IntN(len(managers))]
	switch d.random.IntN(12) {
	case 0:
		return d.create(manager)
	case 1, 2, 3:
		return d.apply(manager, "", d.content(), d.random.IntN(2) == 0, d.pinned())
	case 4, 5, 6:
		return d.apply(manager, "status", d.statusContent(), d.random.IntN(2) == 0, d.pinned())
	case 7:
		return d.update(manager, "")
	case 8:
		return d.update(manager, "status")
	case 9:
		return d.finalizer(manager)
	case 10:
		return d.dryRun(manager)
	}
	if d.random.IntN(2) == 0 {
		return d.update(manager, "status")
	}
	return d.remove()
}

// pinned is what an apply has to meet: "" for anything.
func (d *duel) pinned() string {
	return []string{"", "", "", "", "", "right version", "wrong version", "right uid", "wrong uid"}[d.random.IntN(9)]
}

func (d *duel) body(parts map[string]any) *unstructured.Unstructured {
	u := object(d.kind.GroupVersion().String(), d.kind.Kind, parts)
	u.SetName(d.name)
	return u
}

func (d *duel) apply(manager, subresource string, parts map[string]any, force bool, pin string) deed {
	return deed{fmt.Sprintf("apply %s as %s, force %t, pinned %q: %v", subresource, manager, force, pin, parts),
		func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
			u := d.body(parts).DeepCopy()
			live, _ := d.live(c)
			switch pin {
			case "right version":
				u.SetResourceVersion(live.GetResourceVersion())
			case "wrong version":
				u.SetResourceVersion("3")
			case "right uid":
				u.SetUID(live.GetUID())
			case "wrong uid":
				u.SetUID("3cf7ed2b-4a41-4c4c-9a3a-0a1b2c3d4e5f")
			}
			opts := client.ApplyOptions{FieldManager: manager}
			if force {
				opts.Force = &force
			}
			if subresource != "" {
				return u, c.SubResource(subresource).Apply(ctx, client.ApplyConfigurationFromUnstructured(u), &client.SubResourceApplyOptions{ApplyOptions: opts})
			}
			return u, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), &opts)
		}}
}

func (d *duel) dryRun(manager string) deed {
	parts := d.content()
	return deed{fmt.Sprintf("apply as %s, dry run: %v", manager, parts), func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		u := d.body(parts).DeepCopy()
		return u, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.DryRunAll)
	}}
}

func (d *duel) create(manager string) deed {
	parts := d.content()
	if d.kind.Kind == "App" {
		parts["spec"].(map[string]any)["image"] = "shop:1"
	}
	return deed{fmt.Sprintf("create as %s: %v", manager, parts), func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		u := d.body(parts).DeepCopy()
		return u, c.Create(ctx, u, client.FieldOwner(manager))
	}}
}

// update reads the object, changes a part of it, and sends it all.
func (d *duel) update(manager, subresource string) deed {
	parts := d.content()
	if subresource != "" {
		parts = d.statusContent()
	}
	stale, wipe := d.random.IntN(6) == 0, d.random.IntN(6) == 0
	return deed{fmt.Sprintf("update %s as %s, stale %t, wipe %t: %v", subresource, manager, stale, wipe, parts),
		func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
			u, err := d.live(c)
			if err != nil {
				return nil, err
			}
			for name, part := range parts {
				is, _ := u.Object[name].(map[string]any)
				is = maps.Clone(is)
				if is == nil || wipe && name == "status" {
					is = map[string]any{}
				}
				fields, _ := part.(map[string]any)
				maps.Copy(is, fields)
				u.Object[name] = is
			}
			if stale {
				u.SetResourceVersion("3")
			}
			u = u.DeepCopy()
			if subresource != "" {
				return u, c.SubResource(subresource).Update(ctx, u, client.FieldOwner(manager))
			}
			return u, c.Update(ctx, u, client.FieldOwner(manager))
		}}
}

func (d *duel) finalizer(manager string) deed {
	return deed{"a finalizer comes or goes as " + manager, func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		u, err := d.live(c)
		if err != nil {
			return nil, err
		}
		const name = "model.quell.dev/waits"
		switch {
		case slices.Contains(u.GetFinalizers(), name):
			u.SetFinalizers(nil)
		case u.GetDeletionTimestamp() == nil:
			u.SetFinalizers([]string{name})
		}
		err = c.Update(ctx, u, client.FieldOwner(manager))
		if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
			return nil, err // the last answer of a deleted object differs in what nobody reads
		}
		return u, err
	}}
}

func (d *duel) remove() deed {
	wrong := d.random.IntN(4)
	return deed{fmt.Sprintf("delete, precondition %d", wrong), func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		var opts []client.DeleteOption
		uid, version := types.UID("other"), "3"
		switch wrong {
		case 0:
			opts = append(opts, client.Preconditions{UID: &uid})
		case 1:
			opts = append(opts, client.Preconditions{ResourceVersion: &version})
		}
		u := d.body(nil)
		return nil, c.Delete(ctx, u, opts...)
	}}
}

// content is some of what the kind has beside its status.
func (d *duel) content() map[string]any {
	parts := map[string]any{}
	switch d.kind.Kind {
	case "App":
		parts["spec"] = d.some(map[string]any{
			"replicas": int64(d.random.IntN(3)), "commonLabels": d.some(map[string]any{"a": d.word(), "b": d.word()}),
			"ports": []any{map[string]any{"name": "http", "containerPort": int64(8080 + d.random.IntN(2))}},
			"env":   d.shuffled([]any{map[string]any{"name": "A", "value": d.word()}, map[string]any{"name": "B", "value": d.word()}}),
		})
		parts["spec"].(map[string]any)["image"] = "shop:" + d.word()
	case "Deployment":
		container := d.some(map[string]any{
			"command": []any{d.word()}, "env": d.shuffled([]any{map[string]any{"name": "A", "value": d.word()}, map[string]any{"name": "B", "value": d.word()}}),
			"ports": []any{map[string]any{"name": "http", "containerPort": int64(8080), "protocol": "TCP"}},
		})
		container["name"], container["image"] = "app", "shop:"+d.word()
		spec := d.some(map[string]any{"replicas": int64(d.random.IntN(3)), "minReadySeconds": int64(d.random.IntN(2)), "paused": d.random.IntN(2) == 0})
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": d.name}}
		spec["template"] = map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": d.name}}, "spec": map[string]any{"containers": []any{container}},
		}
		parts["spec"] = spec
	case "ConfigMap":
		parts["data"] = d.some(map[string]any{"a": d.word(), "b": d.word(), "c": ""})
	}
	return parts
}

// statusContent is some of the status, in one of a few orders, and now and then something that is refused.
func (d *duel) statusContent() map[string]any {
	if d.kind.Kind != "App" {
		status := d.some(map[string]any{"observedGeneration": int64(d.random.IntN(3)), "replicas": int64(d.random.IntN(2)), "readyReplicas": int64(0)})
		return map[string]any{"status": status}
	}
	condition := func(kind string) any {
		return map[string]any{
			"type": kind, "status": "True", "reason": "R" + d.word(), "message": d.word(), "lastTransitionTime": "2026-01-02T03:04:05Z",
		}
	}
	row := func(kind string) any {
		return map[string]any{"kind": kind, "name": d.word(), "ready": "True", "reason": "R" + d.word()}
	}
	status := d.some(map[string]any{
		"observedGeneration": int64(d.random.IntN(3)), "phase": []any{"Running", "Failed"}[d.random.IntN(2)], "image": d.word(),
		"replicas": int64(d.random.IntN(2)), "images": d.shuffled([]any{"shop:1", "shop:2"}),
		"conditions": d.shuffled([]any{condition("Ready"), condition("Available")}),
		"children":   d.shuffled([]any{row("Deployment"), row("Service")}),
	})
	switch d.random.IntN(16) {
	case 0:
		status["unheardOf"] = "x"
	case 1:
		status["conditions"] = []any{condition("Ready"), condition("Ready")}
	case 2:
		return map[string]any{}
	}
	return map[string]any{"status": status}
}

func (d *duel) word() string { return []string{"x", "y"}[d.random.IntN(2)] }

// some are some of the fields.
func (d *duel) some(fields map[string]any) map[string]any {
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if d.random.IntN(2) == 0 {
			kept[name] = fields[name]
		}
	}
	return kept
}

// shuffled are one or more of the items, in any order.
func (d *duel) shuffled(items []any) []any {
	d.random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items[:1+d.random.IntN(len(items))]
}
