package ssa

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// builtinDefaults are what the API server adds within atomic values of built-in kinds, by type and field. Their published schemas
// do not tell. One that is not here costs a request for each object in each process.
var builtinDefaults = map[string]map[string]any{
	"io.k8s.api.core.v1.ObjectFieldSelector":                     {"apiVersion": "v1"},
	"io.k8s.api.core.v1.ResourceFieldSelector":                   {"divisor": "0"},
	"io.k8s.api.admissionregistration.v1.RuleWithOperations":     {"scope": "*"},
	"io.k8s.api.discovery.v1.EndpointPort":                       {"name": "", "protocol": "TCP"},
	"io.k8s.api.core.v1.ServiceAccountTokenProjection":           {"expirationSeconds": int64(3600)},
	"io.k8s.api.core.v1.PersistentVolumeClaim":                   {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
	"io.k8s.api.core.v1.PersistentVolumeClaimSpec":               {"volumeMode": "Filesystem"},
	"io.k8s.api.core.v1.PersistentVolumeClaimStatus":             {"phase": "Pending"},
	"io.k8s.api.networking.v1.NetworkPolicyPort":                 {"protocol": "TCP"},
	"io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
	"io.k8s.api.rbac.v1.RoleRef":                                 {"apiGroup": "rbac.authorization.k8s.io"},
	"io.k8s.api.rbac.v1.Subject":                                 {"apiGroup": "rbac.authorization.k8s.io"},
}

// isDefault reports whether a field has its default by the schema, or a map has nothing but such fields.
func isDefault(s *schema.Schema, ref schema.TypeRef, field string, v value.Value) bool {
	for _, d := range []any{schemaDefault(s, ref, field), builtinDefault(ref, field)} {
		if d != nil && value.Equals(v, value.NewValueInterface(d)) {
			return true
		}
	}
	if v == nil || !v.IsMap() || v.AsMap().Empty() {
		return false
	}
	all, below := true, fieldType(s, ref, field)
	v.AsMap().Iterate(func(key string, part value.Value) bool {
		all = isZero(part) || isDefault(s, below, key, part)
		return all
	})
	return all
}

func schemaDefault(s *schema.Schema, ref schema.TypeRef, field string) any {
	atom, ok := s.Resolve(ref)
	if !ok || atom.Map == nil {
		return nil
	}
	f, _ := atom.Map.FindField(field)
	return f.Default
}

func builtinDefault(ref schema.TypeRef, field string) any {
	if ref.NamedType == nil {
		return nil
	}
	return builtinDefaults[*ref.NamedType][field]
}

// typeAt is the type of what a path leads to, one without rules when the schema does not know it.
func typeAt(s *schema.Schema, ref schema.TypeRef, path fieldpath.Path) schema.TypeRef {
	for _, e := range path {
		if e.FieldName != nil {
			ref = fieldType(s, ref, *e.FieldName)
		} else {
			ref = itemType(s, ref)
		}
	}
	return ref
}

func fieldType(s *schema.Schema, ref schema.TypeRef, field string) schema.TypeRef {
	atom, ok := s.Resolve(ref)
	if !ok || atom.Map == nil {
		return schema.TypeRef{}
	}
	if f, ok := atom.Map.FindField(field); ok {
		return f.Type
	}
	return atom.Map.ElementType
}

func itemType(s *schema.Schema, ref schema.TypeRef) schema.TypeRef {
	atom, ok := s.Resolve(ref)
	if !ok || atom.List == nil {
		return schema.TypeRef{}
	}
	return atom.List.ElementType
}
