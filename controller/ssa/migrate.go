package ssa

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// takeOver moves what updates under our own name, or anybody under a former name, own on our subresource into our own
// applier's entry, so that fields which are not wanted any more can be removed. It reads the object past the cache, whose
// managedFields may be trimmed, and patches managedFields under its resourceVersion; a concurrent change leaves it to the
// next call.
func (c *call) takeOver(ctx context.Context, u *unstructured.Unstructured) error {
	if c.Reader == nil || !slices.ContainsFunc(c.Live.GetManagedFields(), c.isFormer) {
		return nil
	}
	fresh := u.DeepCopy()
	fresh.Object = map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}
	if err := c.Reader.Get(ctx, client.ObjectKeyFromObject(u), fresh); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch, err := c.takeOverPatch(fresh)
	if err != nil || patch == nil || fresh.GetUID() != c.Live.GetUID() {
		return err
	}
	switch err := c.patch(ctx, fresh, patch); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("take over the fields of former managers of %s %q: %w", c.kind, u.GetName(), err)
	}
	c.result.Migrated = true
	c.Live, err = c.inScheme(fresh)
	return err
}

func (c *call) patch(ctx context.Context, fresh *unstructured.Unstructured, patch []byte) error {
	raw := client.RawPatch(types.JSONPatchType, patch)
	if c.Subresource == "" {
		return c.Client.Patch(ctx, fresh, raw)
	}
	return c.Client.SubResource(c.Subresource).Patch(ctx, fresh, raw)
}

// isFormer reports whether an entry is to be merged into ours.
func (c *call) isFormer(e metav1.ManagedFieldsEntry) bool {
	if e.Subresource != c.Subresource {
		return false
	}
	return slices.Contains(c.FormerManagers, e.Manager) ||
		e.Manager == c.FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate
}

// takeOverPatch uses client-go's csaupgrade, which merges Update entries into an Apply entry. Apply entries of former
// managers are presented to it as Update entries first.
func (c *call) takeOverPatch(fresh *unstructured.Unstructured) ([]byte, error) {
	entries := fresh.GetManagedFields()
	for i := range entries {
		if c.isFormer(entries[i]) {
			entries[i].Operation = metav1.ManagedFieldsOperationUpdate
		}
	}
	fresh.SetManagedFields(entries)
	names := sets.New(c.FormerManagers...).Insert(c.FieldManager)
	var opts []csaupgrade.Option
	if c.Subresource != "" {
		opts = append(opts, csaupgrade.Subresource(c.Subresource))
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(fresh, names, c.FieldManager, opts...)
	if err != nil {
		return nil, fmt.Errorf("merge managedFields entries of %s %q: %w", c.kind, fresh.GetName(), err)
	}
	return patch, nil
}
