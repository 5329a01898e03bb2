package storm

import (
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key names an object, whatever its uid.
type Key struct {
	schema.GroupResource
	Namespace, Name string
}

// String is such as widgets.example.com/team-a/w1. Without a name it is that of a resource, with its namespace, if any, behind it as
// kubectl takes it: widgets.example.com/team-a would be an object of no namespace.
func (k Key) String() string {
	if k.Name == "" && k.Namespace != "" {
		return k.GroupResource.String() + " -n " + k.Namespace
	}
	parts := []string{k.GroupResource.String(), k.Namespace, k.Name}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "/")
}

// Type says what kind of change it is.
type Type int

const (
	// Written is a version that a create, update or patch made.
	Written Type = iota
	// Deleted is the end of an object.
	Deleted
	// Listed is the version found when the stream began or was taken up again. Between it and the version before there may
	// have been any number of writes; it is never a write by itself.
	Listed
)

// Change is one step in the life of an object.
type Change struct {
	Key
	Type Type
	// Time at which the change was seen; required.
	Time time.Time
	// UID and ResourceVersion of the version; without a resourceVersion every change counts as a version of its own.
	UID             types.UID
	ResourceVersion string
	// Generation of the version, 0 where it is not known.
	Generation int64
	// ManagedFields of the version; nil where they are not known. They and Object are kept and must not be changed afterwards.
	ManagedFields []metav1.ManagedFieldsEntry
	// Object is the whole version as decoded from JSON, nil where only metadata are known.
	Object map[string]any
	// Writer is who made the change, where the source knows it better than managedFields, as an audit log does.
	Writer *fieldowners.Owner
}
