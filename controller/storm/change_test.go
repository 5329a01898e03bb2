package storm_test

import (
	"testing"

	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKeysAreToldApart(t *testing.T) {
	widgets, nodes := schema.GroupResource{Group: "example.com", Resource: "widgets"}, schema.GroupResource{Resource: "nodes"}
	for want, key := range map[string]storm.Key{
		"widgets.example.com/team-a/w1": {GroupResource: widgets, Namespace: "team-a", Name: "w1"},
		"widgets.example.com -n team-a": {GroupResource: widgets, Namespace: "team-a"},
		"widgets.example.com":           {GroupResource: widgets},
		"nodes/team-a":                  {GroupResource: nodes, Name: "team-a"},
		"":                              {},
	} {
		if got := key.String(); got != want {
			t.Errorf("%+v is %q, want %q", key, got, want)
		}
	}
}
