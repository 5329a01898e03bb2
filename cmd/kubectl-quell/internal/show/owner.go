package show

import (
	"strings"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is an owner of fields in a report.
type Owner struct {
	Manager     string       `json:"manager"`
	Operation   string       `json:"operation,omitempty"`
	Subresource string       `json:"subresource,omitempty"`
	APIVersion  string       `json:"apiVersion,omitempty"`
	Time        *metav1.Time `json:"time,omitempty"`
}

// OwnerOf gives an entry's owner in the form of reports.
func OwnerOf(e fieldowners.Entry) Owner {
	return Owner{Manager: e.Manager, Operation: string(e.Operation), Subresource: e.Subresource, APIVersion: e.APIVersion, Time: e.Time}
}

// Words names the owner and what it did, for example `hpa Update/scale`.
func (o Owner) Words() (manager, how string) {
	how = o.Operation
	if o.Subresource != "" {
		how += "/" + o.Subresource
	}
	return Escape(o.Manager), Escape(how)
}

// Line is Words in one text, with the time.
func (o Owner) Line(times Times, now time.Time) string {
	manager, how := o.Words()
	text := manager
	if how != "" {
		text += " (" + how + ")"
	}
	if when := times.Format(o.Time, now); when != "" {
		text += " " + when
	}
	return text
}

// ObjectRef names an object in a report.
type ObjectRef struct {
	APIVersion      string `json:"apiVersion"`
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// TypeName names an object as kubectl does, and takes it, such as deployment.apps/web. It is not escaped.
func (r ObjectRef) TypeName() string { return r.kind() + "/" + r.Name }

// String is TypeName with the namespace, if any, in front of the name, as in deployment.apps/shop/web.
func (r ObjectRef) String() string {
	if r.Namespace == "" {
		return Escape(r.TypeName())
	}
	return Escape(r.kind() + "/" + r.Namespace + "/" + r.Name)
}

func (r ObjectRef) kind() string {
	kind := strings.ToLower(r.Kind)
	if group, _, hasGroup := strings.Cut(r.APIVersion, "/"); hasGroup {
		kind += "." + group
	}
	return kind
}

// Names names the objects of items that are shown together: without the namespace when all that have one have the same, since
// kubectl takes them so.
func Names[I any](items []I, ref func(I) ObjectRef) []string {
	namespaces := map[string]bool{}
	for _, i := range items {
		namespaces[ref(i).Namespace] = true
	}
	delete(namespaces, "")
	names := make([]string, len(items))
	for n, i := range items {
		if names[n] = Escape(ref(i).TypeName()); len(namespaces) > 1 {
			names[n] = ref(i).String()
		}
	}
	return names
}

// RefOf names an object.
func RefOf(u *unstructured.Unstructured) ObjectRef {
	return ObjectRef{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion(),
	}
}
