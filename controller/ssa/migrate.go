package ssa

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	return c.readIn(ctx, c.object.GetAPIVersion())
}

// readIn gets the object in an API version past the cache.
func (c *call) readIn(ctx context.Context, version string) (*unstructured.Unstructured, error) {
	fresh := &unstructured.Unstructured{}
	fresh.SetAPIVersion(version)
	fresh.SetKind(c.object.GetKind())
	return fresh, c.opts.Reader.Get(ctx, client.ObjectKeyFromObject(c.object), fresh)
}

// patchEntries merges former entries of fresh in the API server. fresh is what came back, or as it was when it changed meanwhile.
func (c *call) patchEntries(ctx context.Context, fresh *unstructured.Unstructured) error {
	version, err := c.versionToTakeOver(ctx, fresh.GetManagedFields())
	if err != nil {
		return err
	}
	entries, err := c.merged(fresh.GetManagedFields(), version)
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

// versionToTakeOver is the API version in which our own entry is to name the fields of former ones. As a rule it is the one that they
// all have: at our next apply the API server converts the object to it, and so removes what is not wanted also where that has another
// name in the content's version. It is the content's version when they have several, or one that cannot be converted to: of another
// group, not served any more, or not ours to read. Then fields of the same name are ours, and the others are nobody's and stay.
func (c *call) versionToTakeOver(ctx context.Context, entries []metav1.ManagedFieldsEntry) (string, error) {
	content := c.object.GetAPIVersion()
	versions := sets.New[string]()
	for _, e := range entries {
		if c.isMerged(e) {
			versions.Insert(e.APIVersion)
		}
	}
	version, _ := versions.PopAny()
	if len(versions) > 0 || version == content || schema.FromAPIVersionAndKind(version, "").Group != c.object.GroupVersionKind().Group {
		return content, nil
	}
	_, err := c.readIn(ctx, version)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return content, nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s %q in %s, in which a former manager wrote: %w", c.record.kind, c.object.GetName(), version, err)
	}
	return version, nil
}

// isMerged reports whether an entry is ours or to be merged into ours.
func (c *call) isMerged(e metav1.ManagedFieldsEntry) bool {
	return c.isFormer(e) || fieldowners.OwnerOf(&e).Same(c.owner())
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
func (c *call) merged(entries []metav1.ManagedFieldsEntry, version string) ([]metav1.ManagedFieldsEntry, error) {
	fields := fieldpath.NewSet()
	var others []metav1.ManagedFieldsEntry
	var latest *metav1.Time
	for _, e := range entries {
		if !c.isMerged(e) {
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
		APIVersion: version, Time: latest, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
	}), nil
}
