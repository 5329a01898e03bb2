package model

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// source is where a client reads from.
type source interface {
	get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*Version, error)
	list(ctx context.Context, gvk schema.GroupVersionKind, o *client.ListOptions) ([]*Version, error)
}

// sender carries a write out.
type sender func(context.Context, Request) (*unstructured.Unstructured, error)

// clientOf is a client.Client that reads from one place and writes to another. What it does not model it refuses with an error that
// says so, and panics where there is none to return.
type clientOf struct {
	client.Client // nil: whatever is not modelled panics
	kinds         *Kinds
	from          source
	send          sender
	mapper        meta.RESTMapper
	// cached tells that objects come from a cache, which names their kind even in a Go type.
	cached bool
}

// errNotModelled says that the model does not know what is asked.
func errNotModelled(what string) error { return fmt.Errorf("model: %s is not modelled", what) }

func (c *clientOf) Scheme() *runtime.Scheme     { return c.kinds.scheme }
func (c *clientOf) RESTMapper() meta.RESTMapper { return c.mapper }

func (c *clientOf) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, c.kinds.scheme)
}

func (c *clientOf) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := c.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	v, err := c.from.get(ctx, gvk, key)
	if err != nil {
		return err
	}
	return c.read(v, into)
}

// read copies a version into an object of any form.
func (c *clientOf) read(v *Version, into client.Object) error {
	switch into := into.(type) {
	case *unstructured.Unstructured:
		into.Object = v.Object.DeepCopy().Object
		return nil
	case *metav1.PartialObjectMetadata:
		return runtime.DefaultUnstructuredConverter.FromUnstructured(metadataOf(v.Object), into)
	}
	o, err := v.typed()
	if err != nil {
		return err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
	if !c.cached {
		into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return nil
}

func metadataOf(u *unstructured.Unstructured) map[string]any {
	return map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": u.DeepCopy().Object["metadata"]}
}

func (c *clientOf) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	gvk, err := c.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	o := &client.ListOptions{}
	o.ApplyOptions(opts)
	versions, err := c.from.list(ctx, gvk, o)
	if err != nil {
		return err
	}
	var items []runtime.Object
	for _, v := range versions {
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(v.Object.GetLabels())) {
			continue
		}
		item, err := c.item(into, gvk)
		if err != nil {
			return err
		}
		if err := c.read(v, item); err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(into, items)
}

// item makes an empty object for a list.
func (c *clientOf) item(list client.ObjectList, gvk schema.GroupVersionKind) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	o, err := c.kinds.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return o.(client.Object), nil
}

func (c *clientOf) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	o := &client.ApplyOptions{}
	o.ApplyOptions(opts)
	return c.apply(ctx, "", config, o)
}

func (c *clientOf) apply(ctx context.Context, subresource string, config runtime.ApplyConfiguration, o *client.ApplyOptions) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	body := &unstructured.Unstructured{}
	if err := body.UnmarshalJSON(raw); err != nil {
		return err
	}
	answer, err := c.send(ctx, Request{
		Verb: Apply, Subresource: subresource, Body: body.Object, Manager: o.FieldManager, Force: o.Force != nil && *o.Force, DryRun: len(o.DryRun) > 0,
	})
	if err != nil {
		return err
	}
	return fill(config, answer)
}

// fill puts the answer where the client of controller-runtime puts it.
func fill(config any, answer *unstructured.Unstructured) error {
	if u, ok := config.(interface{ SetUnstructuredContent(map[string]any) }); ok {
		u.SetUnstructuredContent(answer.Object)
		return nil
	}
	raw, err := answer.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, config)
}

func (c *clientOf) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	options := &client.CreateOptions{}
	options.ApplyOptions(opts)
	return c.write(ctx, o, Request{Verb: Create, Manager: options.FieldManager, DryRun: len(options.DryRun) > 0})
}

func (c *clientOf) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	options := &client.UpdateOptions{}
	options.ApplyOptions(opts)
	return c.write(ctx, o, Request{Verb: Update, Manager: options.FieldManager, DryRun: len(options.DryRun) > 0})
}

// write sends a whole object and reads the answer into it.
func (c *clientOf) write(ctx context.Context, o client.Object, q Request) error {
	body, err := c.content(o)
	if err != nil {
		return err
	}
	q.Body = body
	answer, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	return c.read(newVersion(c.kinds, answer, nil), o)
}

func (c *clientOf) content(o client.Object) (map[string]any, error) {
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u = u.DeepCopy()
	u.SetGroupVersionKind(gvk)
	return u.Object, nil
}

func (c *clientOf) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	options := &client.DeleteOptions{}
	options.ApplyOptions(opts)
	body, err := c.content(o)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, Request{Verb: Delete, Body: body, Preconditions: options.Preconditions, DryRun: len(options.DryRun) > 0})
	return err
}

func (c *clientOf) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errNotModelled("a patch other than an apply")
}

func (c *clientOf) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *clientOf) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{clientOf: c, name: name}
}

// subresourceClient is a client of one subresource.
type subresourceClient struct {
	client.SubResourceClient // nil: whatever is not modelled panics
	*clientOf
	name string
}

func (c *subresourceClient) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errNotModelled("reading " + c.name)
}

func (c *subresourceClient) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errNotModelled("creation of " + c.name)
}

func (c *subresourceClient) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errNotModelled("a patch of " + c.name + " other than an apply")
}

func (c *subresourceClient) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	options := &client.SubResourceUpdateOptions{}
	options.ApplyOptions(opts)
	return c.write(ctx, o, Request{Verb: Update, Subresource: c.name, Manager: options.FieldManager})
}

func (c *subresourceClient) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	options := &client.SubResourceApplyOptions{}
	options.ApplyOpts(opts)
	return c.apply(ctx, c.name, config, &options.ApplyOptions)
}

// direct reads from the server itself.
type direct struct{ *Server }

func (d direct) get(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*Version, error) {
	r, err := d.resource(gvk)
	if err != nil {
		return nil, err
	}
	return d.Server.get(r, key)
}

func (d direct) list(_ context.Context, gvk schema.GroupVersionKind, o *client.ListOptions) ([]*Version, error) {
	r, err := d.resource(gvk)
	if err != nil {
		return nil, err
	}
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		return nil, apierrors.NewBadRequest("field selectors are not modelled")
	}
	return d.Server.list(r.GroupKind(), o.Namespace), nil
}

// Client is everybody but the operator: it reads and writes the server itself.
func (s *Server) Client() client.Client {
	return &clientOf{kinds: s.kinds, from: direct{s}, send: func(_ context.Context, q Request) (*unstructured.Unstructured, error) { return s.Do(q) }}
}
