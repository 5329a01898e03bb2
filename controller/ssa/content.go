package ssa

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// digest is the first half of a SHA-256 sum: an Applier keeps seven for each object.
type digest = [sha256.Size / 2]byte

func sum(raw []byte) digest {
	whole := sha256.Sum256(raw)
	return digest(whole[:])
}

func digestOf(text string) digest { return sum([]byte(text)) }

// content is one desired state in the forms that the check needs.
type content struct {
	object *unstructured.Unstructured
	typed  *typed.TypedValue
	// fields is the set that the API server records for an apply of this content.
	fields *fieldpath.Set
	// digest of the canonical form: for a subresource independent of the order of map and set lists and of transition times.
	digest digest
}

// unowned are the fields that the API server never records in managedFields
// (k8s.io/apimachinery/pkg/util/managedfields/internal, stripmeta.go).
var unowned = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
)

// encode gives an apply configuration as JSON.
func encode(desired runtime.ApplyConfiguration) ([]byte, error) {
	raw, err := json.Marshal(desired)
	if err != nil {
		return nil, fmt.Errorf("encode apply configuration: %w", err)
	}
	return raw, nil
}

// identify is a digest of an apply configuration: two with the same one have the same JSON.
func identify(desired runtime.ApplyConfiguration) (digest, error) {
	if d, ok := formOf(desired); ok {
		return d, nil
	}
	raw, err := encode(desired)
	return sum(raw), err
}

// decode turns an encoded apply configuration into an object that can be sent, and refuses what an apply through the
// subresource would drop without a word.
func decode(raw []byte, subresource string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("decode apply configuration: %w", err)
	}
	if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
		return nil, Invalid("apply configuration must have kind, apiVersion and metadata.name, has %q, %q and %q", u.GetKind(), u.GetAPIVersion(), u.GetName())
	}
	return u, refuse(u, subresource)
}

// refuse rejects the parts of an apply configuration that the API server ignores on this endpoint, or that no applier may set.
func refuse(u *unstructured.Unstructured, subresource string) error {
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		if _, set, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", field); set {
			return Invalid("metadata.%s must not be in an apply configuration: build it from nothing instead of from an object that was read", field)
		}
	}
	if subresource == "" {
		if _, set := u.Object["status"]; set {
			return Invalid("status is ignored in an apply of the object itself: apply it through the status subresource")
		}
		return nil
	}
	for field := range u.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" && field != subresource {
			return Invalid("%s is ignored in an apply through the %s subresource: apply it on the object itself", field, subresource)
		}
	}
	return refuseMetadata(u, subresource)
}

func refuseMetadata(u *unstructured.Unstructured, subresource string) error {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for field := range metadata {
		if field != "name" && field != "namespace" {
			return Invalid("metadata.%s is ignored in an apply through the %s subresource: apply it on the object itself", field, subresource)
		}
	}
	if _, set := u.Object[subresource]; !set {
		return Invalid("%s is missing: an apply without it would give up everything that was applied before", subresource)
	}
	return nil
}

// newContent checks an object against its schema and derives what the check needs. Duplicate or missing list keys and
// unknown fields, for which the API server answers with 500, are InvalidContentErrors here.
func newContent(u *unstructured.Unstructured, types managedfields.TypeConverter, subresource string) (*content, error) {
	tv, err := types.ObjectToTyped(u)
	if err != nil {
		return nil, Invalid("%s %q: %v", u.GetKind(), u.GetName(), err)
	}
	fields, err := tv.ToFieldSet()
	if err != nil {
		return nil, Invalid("%s %q: %v", u.GetKind(), u.GetName(), err)
	}
	c := &content{object: u, typed: tv, fields: fields.Difference(unowned)}
	var canonical any = u.Object
	if subresource != "" {
		canonical = withoutTransitionTimes(arrange(tv.Schema(), tv.TypeRef(), u.Object, nil))
	}
	c.digest, err = canonicalDigest(canonical)
	return c, err
}

func canonicalDigest(canonical any) (digest, error) {
	raw, err := json.Marshal(canonical)
	if err != nil {
		return digest{}, fmt.Errorf("encode canonical form: %w", err)
	}
	return sum(raw), nil
}
