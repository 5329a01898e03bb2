package ssa

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
)

type raw object

func (raw) IsApplyConfiguration() {}

func TestDecodeRefuses(t *testing.T) {
	base := func(parts object) raw {
		c := raw{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web", "namespace": "shop"}}
		for k, v := range parts {
			c[k] = v
		}
		return c
	}
	meta := func(field string, value any) object {
		return object{"metadata": object{"name": "web", field: value}, "status": object{}}
	}
	for _, test := range []struct {
		name, subresource string
		desired           raw
		says              string
	}{
		{"nothing at all", "", nil, "must have kind"},
		{"no name", "", raw{"apiVersion": "v1", "kind": "Service"}, "metadata.name"},
		{"resourceVersion", "", base(meta("resourceVersion", "1")), "metadata.resourceVersion"},
		{"managedFields", "", base(meta("managedFields", nil)), "metadata.managedFields"},
		{"uid", "", base(meta("uid", "")), "metadata.uid"},
		{"generation", "status", base(meta("generation", 1)), "metadata.generation"},
		{"creationTimestamp", "", base(meta("creationTimestamp", nil)), "metadata.creationTimestamp"},
		{"status beside a spec", "", base(object{"spec": object{}, "status": object{}}), "status is ignored"},
		{"spec beside a status", "status", base(object{"spec": object{}, "status": object{}}), "spec is ignored"},
		{"labels with a status", "status", base(meta("labels", object{})), "metadata.labels is ignored"},
		{"no status", "status", base(nil), "status is missing"},
		{"another subresource", "scale", base(object{"status": object{}}), "status is ignored"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			encoded, err := encode(test.desired)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = decode(encoded, test.subresource)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(IsTerminal(err)).To(BeTrue())
		})
	}
	for subresource, desired := range map[string]raw{"": base(object{"spec": object{}}), "status": base(object{"status": object{}}), "scale": base(object{"scale": object{}})} {
		encoded, err := encode(desired)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		_, err = decode(encoded, subresource)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), subresource)
	}
}

type unencodable struct{ raw }

func (unencodable) MarshalJSON() ([]byte, error) { return nil, &json.UnsupportedValueError{Str: "x"} }

func TestEncodeSaysWhatFailed(t *testing.T) {
	_, err := encode(unencodable{})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("encode apply configuration")))
}

func TestFieldsAreThoseThatTheAPIServerRecords(t *testing.T) {
	u := deployment(object{"replicas": int64(0)})
	u.SetLabels(map[string]string{"a": "b"})
	c := contentOf(t, u, "")
	NewWithT(t).Expect(c.fields.String()).To(Equal(".metadata.labels.a\n.spec.replicas"), "neither name nor kind")
}
