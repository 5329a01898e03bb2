package quiescence_test

import (
	"testing"

	"github.com/hduolab/quell/test/quiescence"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// With plain testing, against the cluster that $KUBECONFIG names.
func ExampleCheck() {
	_ = func(t *testing.T) {
		config := ctrl.GetConfigOrDie()
		// ... start the operator, create its objects, wait until they are as they should be; then:
		err := quiescence.Check(t.Context(), config, quiescence.Options{
			Kinds: []schema.GroupKind{{Group: "example.com", Kind: "Widget"}, {Group: "apps", Kind: "Deployment"}},
		})
		if err != nil {
			t.Error(err)
		}
	}
}
