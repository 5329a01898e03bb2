package frame

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestTexts(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for _, c := range []struct {
		err  error
		want []string
	}{
		{one, []string{"one"}},
		{fmt.Errorf("in: %w", errors.Join(one, two)), []string{"in: one\ntwo"}}, // a text of its own has the parts in it
		{errors.Join(utilerrors.NewAggregate([]error{one, two, one}), nil, two), []string{"one", "two"}},
		{utilerrors.NewAggregate([]error{errors.Join(two, one)}), []string{"two", "one"}},
		{UsageError{one}, []string{"one"}},
	} {
		if got := Texts(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v is told as %q", c.err, got)
		}
	}
}
