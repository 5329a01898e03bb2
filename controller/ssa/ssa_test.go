package ssa

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// builtin has the merge rules of the built-in kinds.
var builtin = applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)

type object = map[string]any

// deployment is an apply configuration of the object itself, pods one whose pod template has this spec.
func deployment(spec object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web", "namespace": "shop"}, "spec": spec,
	}}
}

func pods(spec object) *unstructured.Unstructured {
	return deployment(object{"template": object{"spec": spec}})
}

// reported is an apply configuration of a Deployment's status.
func reported(status object) *unstructured.Unstructured {
	u := deployment(nil)
	delete(u.Object, "spec")
	u.Object["status"] = status
	return u
}

func contentOf(t *testing.T, u *unstructured.Unstructured, subresource string) *content {
	t.Helper()
	c, err := newContent(u, builtin, subresource)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}
