package show

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ß 日本 'quoted' \"too\" \\":   "plain, ß 日本 'quoted' \"too\" \\",
		"\x1b[2J\r\n\t\a\x00":               `\x1b[2J\r\n\t\a\x00`,
		"\u009b31m\u202e\u200b\u2028\ufeff": `\u009b31m\u202e\u200b\u2028\ufeff`,
		"broken \xff":                       "broken \ufffd",
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := EscapeLines("a\n\tb\r"); got != "a\n\tb\\r" {
		t.Errorf("lines become %q", got)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	rows := [][]string{{"a\x1b[2J", "x", "last "}, {"ß", "", ""}}
	if err := Table(&out, []string{"ONE", "TWO", "THREE"}, rows); err != nil {
		t.Fatal(err)
	}
	want := "ONE        TWO   THREE\na\\x1b[2J   x     last\nß\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestValue(t *testing.T) {
	for want, got := range map[string]string{
		`"a\n"`: Value("a\n", true), "null": Value(nil, true), "<absent>": Value(nil, false), `{"a":[1,true]}`: Value(map[string]any{"a": []any{1, true}}, true),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if long := Value(strings.Repeat("ß", 1000), true); len([]rune(long)) != maxValue+len("...") {
		t.Errorf("a long value has %d characters", len([]rune(long)))
	}
}

func TestLongValuesAreShownWhereTheyDiffer(t *testing.T) {
	long := strings.Repeat("x", 500)
	for _, c := range []struct{ a, b, wantA, wantB string }{
		{long + "1" + long, long + "2", "..." + long[:20] + "1" + long[:39] + "...", "..." + long[:20] + `2"`},
		{long, long, `"` + long[:59] + "...", `"` + long[:59] + "..."},
		{long, long + "y", "..." + long[:20] + `"`, "..." + long[:20] + `y"`},
		{"a" + long, "b" + long, `"a` + long[:58] + "...", `"b` + long[:58] + "..."},
		{"a", "b", `"a"`, `"b"`},
		{long[:50], long[:49] + "y", `"` + long[:50] + `"`, `"` + long[:49] + `y"`},
	} {
		if got := Values(Compared{c.a, true}, Compared{nil, false}, Compared{c.b, true}); !slices.Equal(got, []string{c.wantA, "<absent>", c.wantB}) {
			t.Errorf("got %q, want %q and %q", got, c.wantA, c.wantB)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	when := metav1.NewTime(now.Add(-90 * time.Minute))
	for want, got := range map[string]string{
		"90m": Relative.Format(&when, now), "2026-01-02T01:34:05Z": Absolute.Format(&when, now), "": NoTimes.Format(&when, now) + Absolute.Format(nil, now),
		"<unknown>": Relative.Known(nil, now),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestColoursAreStable(t *testing.T) {
	if got := Palette(true).Of("argocd", "x"); got != "\x1b[38;5;31mx\x1b[0m" || got == Palette(true).Of("helm", "x") {
		t.Error("a manager's colour is not its own")
	}
	if got := Palette(false).Of("argocd", "x") + Palette(false).Warn("y") + Palette(true).Warn(""); got != "xy" {
		t.Errorf("no colour is %q", got)
	}
}

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"kubectl-edit": "kubectl-edit", "apps/v1": "apps/v1", "a=b,c:d@e%f+g.h_i": "a=b,c:d@e%f+g.h_i",
		"": "''", "a b": "'a b'", "$(x)`y`": "'$(x)`y`'", "it's": `'it'\''s'`, "!x": "'!x'", "~": "'~'", "ß": "'ß'", "a\nb": "'a\nb'",
	} {
		if got := ShellWord(text); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	node, web, shop := ObjectRef{APIVersion: "v1", Kind: "Node", Name: "n\n"}, ObjectRef{"apps/v1", "Deployment", "one", "web", "", ""}, ObjectRef{"apps/v1", "Deployment", "two", "web", "", ""}
	self := func(r ObjectRef) ObjectRef { return r }
	if got := Names([]ObjectRef{node, web, web}, self); !slices.Equal(got, []string{`node/n\n`, "deployment.apps/web", "deployment.apps/web"}) {
		t.Errorf("in one namespace %q", got)
	}
	if got := Names([]ObjectRef{node, web, shop}, self); !slices.Equal(got, []string{`node/n\n`, "deployment.apps/one/web", "deployment.apps/two/web"}) {
		t.Errorf("in two namespaces %q", got)
	}
}
