package model

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// second is the time of the server, in the resolution of the API.
func (s *Server) second() time.Time { return s.now().UTC().Truncate(time.Second) }

// compareEntries is the order of the entries of managedFields: by operation, time to the second, manager, version, subresource.
func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(
		cmp.Compare(a.Operation, b.Operation), cmp.Compare(unix(a.Time), unix(b.Time)), cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource),
	)
}

func unix(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}
