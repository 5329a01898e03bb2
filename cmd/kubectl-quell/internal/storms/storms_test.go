package storms

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func of(name, manager string, verdict storm.Verdict) Storm {
	owner := fieldowners.Owner{Manager: manager, Operation: "Update", Subresource: "status", APIVersion: "example.com/v1"}
	again := owner
	again.APIVersion = "example.com/v2"
	return New(storm.Finding{
		Object:  storm.Key{GroupResource: schema.GroupResource{Group: "example.com", Resource: "widgets"}, Namespace: "n", Name: name},
		Verdict: verdict, Peak: 20.0412, Writes: 600, Samples: 64, Confidence: 0.94, Writers: []storm.Writer{{Owner: owner, Writes: 60}, {Owner: again}, {}},
		Fields:   []storm.Field{{Path: ".status.a", Changes: 3}, {Path: ".status.b\x1b[2J"}, {Path: ".status.c"}},
		Evidence: []string{"the same"}, Remedy: verdict.Remedy(),
	})
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	found := []Storm{of("w1", "op", storm.Fight), of("w2", "op", storm.Fight), of("w3", "other", storm.Fight), of("w4", "op", storm.Flapping), of("w5", "op", storm.Fight)}
	if err := Print(&out, false, true, Peak, found); err != nil {
		t.Fatal(err)
	}
	want := "PEAK/S   OBJECT                     MANAGER                            FIELDS                                    WRITES   SAMPLES   CONFIDENCE   VERDICT\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("begins with\n%s", out.String())
	}
	for _, want := range []string{
		`20       widgets.example.com/n/w1   op (Update/status), <unknown>      .status.a, .status.b\x1b[2J, and 1 more   600      64        0.94         Fight` + "\n",
		"\nwidgets.example.com/n/w1, widgets.example.com/n/w2, and 1 more: Fight\n  the same\n  remedy: let one manager",
		"\nwidgets.example.com/n/w3: Fight\n", "\nwidgets.example.com/n/w4: Flapping\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := Print(&out, false, false, Peak, nil); err != nil || out.String() != "no write storm found\n" {
		t.Errorf("of nothing: %v, %q", err, out.String())
	}
}

func TestRateFlag(t *testing.T) {
	for text, want := range map[string]string{"2": "2/s", "0.8/s": "0.8/s", "120/m": "2/s", "1800/h": "0.5/s"} {
		var r Rate
		if err := r.Set(text); err != nil || r.String() != want {
			t.Errorf("%s: %v, %s", text, err, r.String())
		}
	}
	for _, text := range []string{"", "0", "-1", "x/s", "1/d", "Inf", "NaN/s"} {
		if err := new(Rate).Set(text); err == nil {
			t.Errorf("%q is a rate", text)
		}
	}
}

func TestRounded(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.12345: "0.123", 1.2345: "1.23", 20.04: "20", 99.96: "100", 12345.6: "12346"} {
		if got := Number(Rounded(v)); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
