package storms

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// user is the field manager of who creates the objects.
const user = "storms-user"

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// site is where a storm takes place.
type site struct {
	Found
	namespace string
	// isOwn is whether the namespace was made for this run.
	isOwn bool
	user  *operator
	// operators by manager, in their order.
	operators []*operator
}

func newSite(config *rest.Config, namespace string, s Storm) (*site, error) {
	place := &site{Found: s.Found, namespace: namespace}
	var err error
	if place.user, err = newOperator(config, user, namespace); err != nil {
		return nil, err
	}
	for _, name := range s.Found.Managers {
		o, err := newOperator(config, name, namespace)
		if err != nil {
			return nil, err
		}
		place.operators = append(place.operators, o)
	}
	return place, nil
}

func (s *site) setUp(ctx context.Context) error {
	client := s.user.client.Resource(namespaces)
	_, err := client.Create(ctx, object(namespaces, "Namespace", s.namespace, nil), metav1.CreateOptions{})
	if err == nil {
		s.isOwn = true
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", s.namespace, err)
	}
	found, err := client.Get(ctx, s.namespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", s.namespace, err)
	}
	if found.GetDeletionTimestamp() != nil {
		return fmt.Errorf("namespace %s is still being deleted: wait until it is gone", s.namespace)
	}
	return nil
}

// cleanUp deletes the objects itself: a cluster without controllers deletes nothing along with a namespace.
func (s *site) cleanUp(ctx context.Context) error {
	for _, name := range s.Objects {
		err := s.user.in(s.Resource.WithVersion("v1")).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if !s.isOwn {
		return nil
	}
	err := s.user.client.Resource(namespaces).Delete(ctx, s.namespace, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// create makes the objects as a user does.
func (s *site) create(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var made []*unstructured.Unstructured
	for _, name := range s.Objects {
		o, err := s.user.create(ctx, s.Resource.WithVersion("v1"), name)
		if err != nil {
			return nil, err
		}
		made = append(made, o)
	}
	return made, nil
}

// object has some content besides its name.
func object(r schema.GroupVersionResource, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(o.Object, content)
	o.SetGroupVersionKind(r.GroupVersion().WithKind(kind))
	o.SetName(name)
	return o
}

// operator is a client under the name of a field manager.
type operator struct {
	name, namespace string
	client          dynamic.Interface
}

func newOperator(config *rest.Config, name, namespace string) (*operator, error) {
	own := rest.CopyConfig(config)
	own.UserAgent = name + "/v1"
	own.QPS = -1 // the storm has a rate of its own
	client, err := dynamic.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &operator{name, namespace, client}, nil
}

func (o *operator) in(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return o.client.Resource(r).Namespace(o.namespace)
}

func (o *operator) create(ctx context.Context, r schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	spec := map[string]any{"spec": map[string]any{"size": int64(1)}}
	return o.in(r).Create(ctx, object(r, kindOf[r.Resource], name, spec), metav1.CreateOptions{FieldManager: o.name})
}

// update replaces an object, or with the subresource status the status of one. Where somebody else was faster it goes on from
// the object as it is now, without a write.
func (o *operator) update(ctx context.Context, r schema.GroupVersionResource, u *unstructured.Unstructured, subresources ...string) (*unstructured.Unstructured, error) {
	updated, err := o.in(r).Update(ctx, u, metav1.UpdateOptions{FieldManager: o.name}, subresources...)
	if apierrors.IsConflict(err) {
		return o.in(r).Get(ctx, u.GetName(), metav1.GetOptions{})
	}
	return updated, err
}

// apply sends an apply configuration with force.
func (o *operator) apply(ctx context.Context, r schema.GroupVersionResource, name string, content map[string]any, subresources ...string) (*unstructured.Unstructured, error) {
	return o.in(r).Apply(ctx, name, object(r, kindOf[r.Resource], name, content), metav1.ApplyOptions{FieldManager: o.name, Force: true}, subresources...)
}

// writesStatus is a program that goes over its objects again and again and updates the status of each. Change is told how
// many times an object was written before.
func writesStatus(change func(status map[string]any, n int)) start {
	return func(ctx context.Context, s *site) (pass, error) {
		objects, err := s.create(ctx)
		if err != nil {
			return nil, err
		}
		sent := 0
		return func(ctx context.Context) error {
			i := sent % len(objects)
			status, _, err := unstructured.NestedMap(objects[i].Object, "status") // a copy
			if err != nil {
				return errors.New("the status is no object")
			}
			if status == nil {
				status = map[string]any{}
			}
			change(status, sent/len(objects))
			objects[i].Object["status"] = status
			objects[i], err = s.operators[0].update(ctx, widgets, objects[i], "status")
			sent++
			return err
		}, nil
	}
}
