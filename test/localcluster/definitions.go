package localcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// WaitEstablished returns once the named CustomResourceDefinitions are established, or after a minute with an error that names the
// one it waited for. 'kubectl wait --for=condition=Established' does not do: it fails at once while a definition, just
// created, has no conditions at all.
func WaitEstablished(ctx context.Context, config *rest.Config, names ...string) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, name := range names {
		var last error
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
			if ctx.Err() == nil {
				last = err
			}
			return err == nil && isEstablished(crd), nil
		})
		if err != nil {
			return fmt.Errorf("wait until CustomResourceDefinition %s is established: %w", name, errors.Join(err, last))
		}
	}
	return nil
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
