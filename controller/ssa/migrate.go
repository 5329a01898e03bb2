package ssa

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// takeOver moves what updates under our own name, or anybody under a former name, own on our subresource into our own
// applier's entry, so that fields which are not wanted any more can be removed. It reads the object past the cache, whose
// managedFields may be trimmed, and patches managedFields under its resourceVersion; a concurrent change leaves it to the
// next call. The patch goes to the object itself, for the API server ignores managedFields in a request to a subresource;
// where it is forbidden the entries stay as they are.
func (c *call) takeOver(ctx context.Context) error {
	if c.opts.Reader == nil || c.record.denied || !slices.ContainsFunc(c.Live.GetManagedFields(), c.isFormer) {
		return nil
	}
	fresh, err := c.read(ctx)
	if err != nil || fresh.GetUID() != c.Live.GetUID() {
		return client.IgnoreNotFound(err)
	}
	if slices.ContainsFunc(fresh.GetManagedFields(), c.isFormer) {
		if err := c.patchEntries(ctx, fresh); err != nil {
			return err
		}
	}
	if c.Live, err = c.inScheme(fresh); err == nil {
		c.keep(c.Live)
	}
	return err
}

// read gets the object past the cache.
func (c *call) read(ctx context.Context) (*unstructured.Unstructured, error) {
	fresh := &unstructured.Unstructured{}
	fresh.SetGroupVersionKind(c.object.GroupVersionKind())
	err := c.opts.Reader.Get(ctx, client.ObjectKeyFromObject(c.object), fresh)
	return fresh, err
}

// patchEntries merges former entries of fresh in the API server. fresh is what came back, or as it was when it changed meanwhile.
func (c *call) patchEntries(ctx context.Context, fresh *unstructured.Unstructured) error {
	entries, err := c.merged(fresh.GetManagedFields())
	if err != nil {
		c.leave(ctx, err)
		return nil
	}
	done, err := c.replaceEntries(ctx, fresh, entries)
	c.pending = c.pending || !done && !c.record.denied
	return err
}

// replaceEntries patches the managedFields of fresh, which is what came back then. It reports false when the object changed
// meanwhile or patching is forbidden.
func (c *call) replaceEntries(ctx context.Context, fresh *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) (bool, error) {
	// A replaced resourceVersion, unlike a tested one, is answered with a conflict when it is outdated.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": fresh.GetResourceVersion()},
	})
	if err != nil {
		return false, fmt.Errorf("encode managedFields: %w", err)
	}
	switch err := c.opts.Client.Patch(ctx, fresh, client.RawPatch(types.JSONPatchType, patch)); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		c.leave(ctx, err)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("take over fields of %s %q: %w", c.record.kind, fresh.GetName(), err)
	}
	c.result.Migrated = true
	return true, nil
}

// leave gives up taking over on this object, and says so once.
func (c *call) leave(ctx context.Context, err error) {
	c.record.denied = true
	logf.FromContext(ctx).Error(err, "fields that are owned under another name cannot be taken over, so they stay although they are not "+
		"wanted; allow patch on the object itself, or mend its managedFields, and start again",
		"kind", c.record.kind, "name", c.object.GetName(), "fieldManager", c.opts.FieldManager)
}

// isFormer reports whether an entry is to be merged into ours.
func (c *call) isFormer(e metav1.ManagedFieldsEntry) bool {
	if e.Subresource != c.opts.Subresource || fieldowners.OwnerOf(&e).Same(c.owner()) {
		return false
	}
	return slices.Contains(c.opts.FormerManagers, e.Manager) ||
		e.Manager == c.opts.FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate
}

// merged gives our own entry the fields of all former ones, which disappear.
func (c *call) merged(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	fields := fieldpath.NewSet()
	var others []metav1.ManagedFieldsEntry
	var latest *metav1.Time
	for _, e := range entries {
		if !c.isFormer(e) && !fieldowners.OwnerOf(&e).Same(c.owner()) {
			others = append(others, e)
			continue
		}
		decoded := fieldowners.Parse([]metav1.ManagedFieldsEntry{e})[0]
		if decoded.Unknown != nil {
			return nil, fmt.Errorf("managedFields entry of %s: %w", decoded.Owner, decoded.Unknown)
		}
		fields = fields.Union(decoded.Fields)
		if latest == nil || latest.Before(decoded.Time) {
			latest = decoded.Time
		}
	}
	raw, err := fields.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("encode merged fields: %w", err)
	}
	return append(others, metav1.ManagedFieldsEntry{
		Manager: c.opts.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: c.opts.Subresource,
		APIVersion: c.object.GetAPIVersion(), Time: latest, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
	}), nil
}
