package ssa

import (
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func pathOf(t *testing.T, text string) fieldpath.Path {
	t.Helper()
	p, err := fieldowners.ParsePath(text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return p
}

func TestTheLongestRuleThatFitsCounts(t *testing.T) {
	const containers = ".spec.template.spec.containers"
	rules := Rules{Default: Yield, Paths: []PathRule{
		{".spec", Report},
		{containers + `[name="web"]`, Force},
		{containers + `[name="web"].image`, Yield},
		{".spec.template", Yield},
		{containers + `[name="web"].ports[containerPort=80]`, Report},
		{".metadata.labels[\"a.b/c\"]", Force},
		{".spec.replicas", Yield},
		{".spec.replicas", Force}, // of two for one field the last counts
	}}
	v, err := rules.read()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for path, want := range map[string]Rule{
		".metadata.labels.team":             Yield,
		".metadata.labels[\"a.b/c\"]":       Force,
		".metadata.labels[\"a.b/d\"]":       Yield,
		".spec.replicas":                    Force,
		".spec.replicasElse":                Report,
		".spec.paused":                      Report,
		".spec.template.metadata.labels.x":  Yield,
		containers + `[name="web"].command`: Force,
		containers + `[name="web"].image`:   Yield,
		containers + `[name="other"].image`: Yield,
		containers + `[name="web"].ports[containerPort=80,protocol="TCP"].name`:  Report,
		containers + `[name="web"].ports[containerPort=80,protocol="UDP"].name`:  Report,
		containers + `[name="web"].ports[containerPort=443,protocol="TCP"].name`: Force,
	} {
		NewWithT(t).Expect(v.of(pathOf(t, path))).To(Equal(want), path)
	}
	g := NewWithT(t)
	g.Expect(v.forces(pathOf(t, containers+`[name="web"]`))).To(BeFalse(), "the image within is to be yielded")
	g.Expect(v.forces(pathOf(t, containers+`[name="web"].command`))).To(BeTrue())
	whole, err := Rules{Default: Yield, Paths: []PathRule{{".a.b", Force}, {".c.d", Force}, {".c.e", Report}, {".f", Yield}}}.read()
	g.Expect(err).NotTo(HaveOccurred())
	for path, rule := range map[string]Rule{".a": Force, ".a.b": Force, ".a.x": Yield, ".c": Report, ".f": Yield, ".x": Yield} {
		g.Expect(whole.strictest(pathOf(t, path))).To(Equal(rule), path)
	}
	within, err := Rules{Paths: []PathRule{{".spec.ports[port=53].targetPort", Yield}}}.read()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(within.forces(pathOf(t, `.spec.ports[port=53,protocol="UDP"]`))).To(BeFalse(), "a part of the key is enough")
	g.Expect(within.forces(pathOf(t, `.spec.ports[port=54,protocol="UDP"]`))).To(BeTrue())
	g.Expect(verdicts{}.of(pathOf(t, ".spec"))).To(Equal(Force), "without rules")
}

func TestRulesArePartOfWhatIsRemembered(t *testing.T) {
	g := NewWithT(t)
	content := digestOf("content")
	g.Expect(Rules{}.mark(content)).To(Equal(content))
	g.Expect(Rules{Default: Force, Paths: []PathRule{{".spec", Force}}}.mark(content)).To(Equal(content), "the same as none")
	seen := map[digest]bool{content: true}
	for _, r := range []Rules{
		{Default: Yield}, {Default: Report}, {Default: Report, Paths: []PathRule{{".spec", Force}}},
		{Default: Report, Paths: []PathRule{{".spec", Yield}}}, {Paths: []PathRule{{".spec", Yield}}}, {Paths: []PathRule{{".spec.x", Yield}}},
	} {
		mark := r.mark(content)
		g.Expect(seen[mark]).To(BeFalse(), "%v", r)
		seen[mark] = true
		g.Expect(r.mark(content)).To(Equal(mark))
	}
}

func TestRulesThatCannotBeReadAreTerminal(t *testing.T) {
	for _, path := range []string{"", ".spec[", ".spec.containers[web]", ".spec..image"} {
		_, err := Rules{Paths: []PathRule{{path, Yield}}}.read()
		NewWithT(t).Expect(IsTerminal(err)).To(BeTrue(), path)
	}
}

func TestCut(t *testing.T) {
	whole := func() object {
		return object{"a": object{"b": "1", "c": object{"d": "2"}}, "list": []any{object{"name": "x", "v": "1"}, object{"name": "y", "w": object{"z": "1"}}}}
	}
	for path, want := range map[string]object{
		".a.b":                {"a": object{"c": object{"d": "2"}}, "list": whole()["list"]},
		".a.c.d":              {"a": object{"b": "1"}, "list": whole()["list"]},
		`.list[name="x"].v`:   {"a": whole()["a"], "list": []any{object{"name": "x"}, whole()["list"].([]any)[1]}},
		`.list[name="y"].w.z`: {"a": whole()["a"], "list": []any{whole()["list"].([]any)[0], object{"name": "y"}}},
		".nothing.here":       whole(),
		`.list[name="z"].v`:   whole(),
		`.list[name="x"]`:     {"a": whole()["a"], "list": []any{whole()["list"].([]any)[1]}},
		".a.b.deeper":         whole(),
		".list":               {"a": whole()["a"]},
	} {
		from := whole()
		NewWithT(t).Expect(cut(from, pathOf(t, path))).To(Equal(want), path)
		NewWithT(t).Expect(from).To(Equal(whole()), "%s changed what it was given", path)
	}
}

func TestContested(t *testing.T) {
	web := func(fields object) object {
		fields["name"] = "web"
		return object{"replicas": int64(2), "template": object{"spec": object{"containers": []any{fields}}}}
	}
	const path = `.spec.template.spec.containers[name="web"]`
	desired := deployment(web(object{"image": "a", "command": []any{"x"}, "stdin": false}))
	theirs := owns("they", "", "name", "image", "command", "stdin")
	for name, c := range map[string]struct {
		live    object
		entries []fieldowners.Entry
		want    []string
	}{
		"nothing of others":                    {web(object{"image": "b"}), nil, nil},
		"others with the same values":          {web(object{"image": "a", "command": []any{"x"}}), []fieldowners.Entry{theirs}, nil},
		"others with another value":            {web(object{"image": "b", "command": []any{"x"}}), []fieldowners.Entry{theirs}, []string{path + ".image"}},
		"an atomic list":                       {web(object{"image": "a", "command": []any{"x", "y"}}), []fieldowners.Entry{theirs}, []string{path + ".command"}},
		"ours too":                             {web(object{"image": "b", "command": []any{"x"}}), []fieldowners.Entry{owns("me", "image"), theirs}, []string{path + ".image"}},
		"what others own and the object lacks": {web(object{"image": "a"}), []fieldowners.Entry{theirs}, []string{path + ".command"}},
		"what differs and is ours alone":       {web(object{"image": "b", "command": []any{"x"}}), []fieldowners.Entry{owns("me", "image")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live, err := builtin.ObjectToTyped(deployment(c.live))
			g.Expect(err).NotTo(HaveOccurred())
			var found []string
			for _, x := range contested(contentOf(t, desired, ""), live, false, c.entries, ownerNamed("me")) {
				g.Expect(x.owners).To(ConsistOf(HaveField("Manager", "they")))
				found = append(found, x.text)
			}
			g.Expect(found).To(Equal(c.want))
		})
	}
}

func TestAZeroThatOthersOwnAndTheObjectLacksIsContestedWhenItLacksIt(t *testing.T) {
	zero := deployment(object{"minReadySeconds": int64(0)})
	live, err := builtin.ObjectToTyped(deployment(object{"replicas": int64(1)}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	theirs := fieldowners.Entry{Owner: ownerNamed("they"), Fields: fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "minReadySeconds"))}
	for exact, contests := range map[bool]int{true: 1, false: 0} {
		found := contested(contentOf(t, zero, ""), live, exact, []fieldowners.Entry{theirs}, ownerNamed("me"))
		NewWithT(t).Expect(found).To(HaveLen(contests), "exact: %t", exact)
	}
}

func TestAnEmptyMapOfOthersThatTheObjectLacksIsContestedByWhatGoesIntoIt(t *testing.T) {
	live, err := builtin.ObjectToTyped(deployment(object{"template": object{}}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for path, contests := range map[string]int{".metadata.annotations": 1, ".metadata.labels": 1, ".spec.template.metadata.labels": 0} {
		g := NewWithT(t)
		theirs := fieldowners.Entry{Owner: ownerNamed("they"), Fields: fieldpath.NewSet(pathOf(t, path))}
		desired := deployment(object{"template": object{"metadata": object{"labels": object{"a": "b"}}}})
		desired.SetLabels(map[string]string{"a": "b"})
		desired.Object["metadata"].(object)["annotations"] = object{}
		content := contentOf(t, desired, "")
		found := contested(content, live, true, []fieldowners.Entry{theirs}, ownerNamed("me"))
		g.Expect(found).To(HaveLen(1))
		g.Expect(found[0].text).To(Equal(path))
		perhaps := contested(content, live, false, []fieldowners.Entry{theirs}, ownerNamed("me"))
		g.Expect(perhaps).To(HaveLen(contests), "what is left out may be there: %s", path)
		named := (&call{content: content}).named([]fieldowners.Conflict{{Owner: theirs.Owner, Path: path}})
		g.Expect(named).To(HaveLen(1))
		g.Expect(named[0].path).To(Equal(found[0].path))
	}
}

func TestAConflictIsFoundInTheContentThatItIsAbout(t *testing.T) {
	content := contentOf(t, pods(object{
		"containers":       []any{object{"name": "web", "ports": []any{object{"containerPort": int64(80)}}, "env": []any{}}},
		"imagePullSecrets": []any{}, "tolerations": []any{}, "securityContext": object{},
	}), "")
	const spec = ".spec.template.spec"
	for path, known := range map[string]bool{
		spec: true, spec + ".imagePullSecrets": true, spec + ".tolerations": true, spec + ".securityContext": true,
		spec + ".containers": true, spec + `.containers[name="web"]`: true, spec + `.containers[name="web"].env`: true,
		spec + `.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort`: true,
		spec + ".volumes": false, spec + `.containers[name="web"].image`: false,
	} {
		named := (&call{content: content}).named([]fieldowners.Conflict{{Owner: ownerNamed("they"), Path: pathOf(t, path).String()}})
		NewWithT(t).Expect(named).To(HaveLen(1))
		NewWithT(t).Expect(named[0].path != nil).To(Equal(known), path)
	}
}

func TestOfTwoPathsWithOneTextNeitherIsYielded(t *testing.T) {
	g := NewWithT(t)
	widget := &unstructured.Unstructured{Object: object{
		"apiVersion": "test.quell.dev/v1", "kind": "Widget", "metadata": object{"name": "w"},
		"spec": object{"hosts": object{"a.b": "ours", "a": object{"b": "ours"}}},
	}}
	content, err := newContent(widget, managedfields.NewDeducedTypeConverter(), "")
	g.Expect(err).NotTo(HaveOccurred())
	c := &call{Applier: &Applier{}, content: content, Intent: Intent{Rules: Rules{Default: Yield}}}
	_, done, err := c.rule(c.named([]fieldowners.Conflict{{Owner: ownerNamed("they"), Path: ".spec.hosts.a.b"}}))
	g.Expect(done, err).To(BeTrue(), "reported")
	g.Expect(c.content).To(BeIdenticalTo(content))
}

func TestAnItemWhoseKeyIsYieldedGoesWhole(t *testing.T) {
	key := pathOf(t, `.spec.template.spec.containers[name="web"].name`)
	spec := cut(pods(object{"containers": []any{object{"name": "web", "image": "a"}, object{"name": "side", "image": "b"}}}).Object, key)
	NewWithT(t).Expect(spec).To(Equal(pods(object{"containers": []any{object{"name": "side", "image": "b"}}}).Object))
}

func TestARehearsalKnowsUsByNoName(t *testing.T) {
	live := pods(object{"hostNetwork": true, "nodeName": "theirs"})
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "they", Operation: "Update", APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:hostNetwork":{},"f:nodeName":{}}}}}`),
	}})
	for _, name := range []string{"me", "0", "ours"} {
		g := NewWithT(t)
		c := &call{Applier: &Applier{opts: Options{FieldManager: name, Types: builtin}}, content: contentOf(t, pods(object{"priority": int64(1)}), "")}
		s, err := c.survey(live)
		g.Expect(err).NotTo(HaveOccurred())
		final, err := c.applied(s.live, live.GetManagedFields())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(at(final.AsValue(), pathOf(t, ".spec.template.spec.nodeName"))).NotTo(BeNil(), name)
	}
}

func TestLiveIsExactByItsType(t *testing.T) {
	for _, test := range []struct {
		live  client.Object
		exact bool
	}{{deployment(nil), true}, {&appsv1.Deployment{}, true}, {&appsv1.StatefulSet{}, false}, {&metav1.PartialObjectMetadata{}, false}} {
		NewWithT(t).Expect(isLiveExact(test.live, deployment(nil).GroupVersionKind())).To(Equal(test.exact), "%T", test.live)
	}
}

func TestAnEmptyMapBesideWhatOthersHaveInItIsNoContest(t *testing.T) {
	limits := func(limits object) *unstructured.Unstructured {
		return pods(object{"containers": []any{object{"name": "web", "resources": object{"limits": limits}}}})
	}
	mapOf := fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "web"), "resources", "limits")
	theirs := fieldowners.Entry{Owner: ownerNamed("they"), Fields: fieldpath.NewSet(mapOf, append(mapOf.Copy(), fieldpath.MakePathOrDie("cpu")...))}
	live, err := builtin.ObjectToTyped(limits(object{"cpu": "1"}))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for cpu, contests := range map[string]int{"": 0, "1": 0, "2": 1} {
		desired := object{}
		if cpu != "" {
			desired["cpu"] = cpu
		}
		c, err := newContent(limits(desired), builtin, "")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(contested(c, live, false, []fieldowners.Entry{theirs}, ownerNamed("me"))).To(HaveLen(contests), "cpu %q", cpu)
	}
}

func TestLocate(t *testing.T) {
	object := deployment(object{"replicas": int64(1), "template": object{
		"metadata": object{"labels": object{"a.b/c": "1"}},
		"spec": object{"containers": []any{
			object{"name": "side", "image": "b"},
			object{"name": "web", "image": "a", "command": []any{"x"}, "ports": []any{object{"containerPort": int64(80), "protocol": "TCP", "name": "http"}}},
		}},
	}})
	c := contentOf(t, object, "")
	for field, want := range map[string]string{
		"spec.replicas":                                        ".spec.replicas",
		"spec.template.spec.containers[1].image":               `.spec.template.spec.containers[name="web"].image`,
		"spec.template.spec.containers[1].ports[0].name":       `.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].name`,
		"spec.template.spec.containers[0]":                     `.spec.template.spec.containers[name="side"]`,
		"spec.template.spec.containers[7].image":               ".spec.template.spec.containers",
		"spec.template.spec.containers[1].command[0]":          `.spec.template.spec.containers[name="web"].command`,
		"spec.template.spec.containers[1].readinessProbe.exec": `.spec.template.spec.containers[name="web"]`,
		"spec.template.metadata.labels[a.b/c]":                 `.spec.template.metadata.labels["a.b/c"]`,
		"":                                                     ".", "nothing": ".", "[": ".", "spec[0]": ".spec",
	} {
		NewWithT(t).Expect(fieldowners.FormatPath(locate(field, c.typed.AsValue(), c.fields))).To(Equal(want), field)
	}
}

func TestChoicesBeginWithTheLeast(t *testing.T) {
	const ports = ".spec.ports"
	entry := func(manager string, paths ...string) metav1.ManagedFieldsEntry {
		set := fieldpath.NewSet()
		for _, p := range paths {
			set.Insert(pathOf(t, p))
		}
		raw, err := set.ToJSON()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))}
	}
	item := func(name string, port int64) object { return object{"name": name, "port": port, "protocol": "TCP"} }
	service := func(items ...any) object {
		return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "web"}, "spec": object{"ports": items}}
	}
	live := deployment(nil)
	live.Object = service(item("http", 8080), item("metrics", 9090))
	live.SetManagedFields([]metav1.ManagedFieldsEntry{entry("they",
		ports+`[port=8080,protocol="TCP"]`, ports+`[port=8080,protocol="TCP"].name`, ports+`[port=9090,protocol="TCP"]`, ports+`[port=9090,protocol="TCP"].name`)})
	desired := deployment(nil)
	desired.Object = service(item("http", 80))
	for name, c := range map[string]struct {
		rules Rules
		cause metav1.StatusCause
		want  [][]string
	}{
		"a name that comes twice": {Rules{}, metav1.StatusCause{Type: metav1.CauseTypeFieldValueDuplicate, Field: "spec.ports[2].name"},
			[][]string{{"8080"}}},
		"theirs that is named itself": {Rules{}, metav1.StatusCause{Type: metav1.CauseTypeFieldValueDuplicate, Field: "spec.ports[0].name"},
			[][]string{{"8080"}}},
		"another fault of the list": {Rules{}, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.ports[2]"},
			[][]string{{"8080"}, {"9090"}, {"8080", "9090"}}},
		"elsewhere":                  {Rules{}, metav1.StatusCause{Field: "metadata.labels"}, nil},
		"nowhere":                    {Rules{}, metav1.StatusCause{Message: "as a policy refuses"}, nil},
		"what is not to be taken":    {Rules{Paths: []PathRule{{ports, Yield}}}, metav1.StatusCause{Field: "spec.ports[2]"}, nil},
		"what is not to be taken, 2": {Rules{Default: Report}, metav1.StatusCause{Field: "spec.ports[2]"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			call := &call{Applier: &Applier{opts: Options{Types: builtin, FieldManager: "me"}}, Intent: Intent{Rules: c.rules}, content: contentOf(t, desired, "")}
			s, err := call.survey(live)
			g.Expect(err).NotTo(HaveOccurred())
			var found [][]string
			for _, choice := range s.choices([]metav1.StatusCause{c.cause}) {
				var numbers []string
				for _, p := range choice {
					numbers = append(numbers, map[string]string{
						ports + `[port=8080,protocol="TCP"]`: "8080", ports + `[port=9090,protocol="TCP"]`: "9090",
					}[fieldowners.FormatPath(p)])
				}
				found = append(found, numbers)
			}
			g.Expect(found).To(Equal(c.want))
		})
	}
}
