package app

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configHashLength is the length of AnnotationConfigHash in hexadecimal digits.
//
// Whoever reads the annotation learns that content changed, and nothing of the content: each object is hashed under its uid, which is random
// and stands nowhere near the Pods. It does not protect from somebody who knows the uid too and can guess the content: they may
// test guesses, although at this length one of four billion wrong guesses passes. The uid is shown to whoever may read the
// object itself, and in audit logs. An object that is deleted and made again with the same content counts as changed.
const configHashLength = 8

// Kinds of objects that configFiles mount.
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// errConfigDenied says that the operator may not read and watch a kind.
var errConfigDenied = errors.New("the operator may not read and watch it")

// configRef names an object whose content rolls the Pods.
type configRef struct{ kind, name string }

func (r configRef) String() string { return fmt.Sprintf("%s %q", r.kind, r.name) }

// rolling are the objects whose content rolls the App's Pods, sorted, each once.
func rolling(app *quellv1alpha1.App) []configRef {
	var refs []configRef
	for _, f := range app.Spec.ConfigFiles {
		switch {
		case f.OnChange != quellv1alpha1.ConfigRoll:
		case f.ConfigMap != "":
			refs = append(refs, configRef{kindConfigMap, f.ConfigMap})
		case f.Secret != "":
			refs = append(refs, configRef{kindSecret, f.Secret})
		}
	}
	slices.SortFunc(refs, func(a, b configRef) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return slices.Compact(refs)
}

// lookAtConfig finds out what the objects contain whose content rolls the App's Pods.
func (r *Reconciler) lookAtConfig(ctx context.Context, seen *observed) error {
	refs := rolling(seen.app)
	if len(refs) == 0 || deletionPending(seen.app) {
		return nil
	}
	sums := make(map[configRef][]byte, len(refs))
	var missing, denied []string
	for _, ref := range refs {
		sum, err := r.configs.sum(ctx, ref.kind, client.ObjectKey{Namespace: seen.app.Namespace, Name: ref.name})
		switch {
		case errors.Is(err, errConfigDenied):
			denied = append(denied, ref.String())
		case apierrors.IsNotFound(err):
			missing = append(missing, ref.String())
		case err != nil:
			return fmt.Errorf("look at %s: %w", ref, err)
		}
		sums[ref] = sum
	}
	seen.configHash = combined(refs, sums)
	if len(denied)+len(missing) > 0 {
		seen.keepConfig(denied, missing)
	}
	return nil
}

// keepConfig leaves the Pods what they have.
func (o *observed) keepConfig(denied, missing []string) {
	o.configHash = ""
	if d := o.deployment(); d != nil {
		o.configHash = d.Spec.Template.Annotations[AnnotationConfigHash]
	}
	if len(denied) > 0 {
		o.configStalled = found(reasonForbidden, "onChange Roll needs the right to read and watch %s, which the operator does not have: "+
			"let an administrator grant it with kubectl apply -k config/configroll, or set onChange to Ignore", strings.Join(denied, ", "))
	}
	if len(missing) > 0 {
		o.configMoving = found(reasonConfigMissing, "waiting for %s of spec.configFiles to be created; the Pods stay as they are", strings.Join(missing, ", "))
	}
}

// combined is the annotation for several objects.
func combined(refs []configRef, sums map[configRef][]byte) string {
	all := sha256.New()
	for _, ref := range refs {
		fmt.Fprintf(all, "%s/%s:%x;", ref.kind, ref.name, sums[ref])
	}
	return hex.EncodeToString(all.Sum(nil))[:configHashLength]
}

// contentSum is the hash of what a ConfigMap or Secret contains, under its uid.
func contentSum(o client.Object) ([]byte, error) {
	var content any
	switch o := o.(type) {
	case *corev1.ConfigMap:
		content = []any{o.Data, o.BinaryData}
	case *corev1.Secret:
		content = o.Data
	default:
		return nil, fmt.Errorf("%T has no content to hash", o)
	}
	sum := hmac.New(sha256.New, []byte(o.GetUID()))
	if err := json.NewEncoder(sum).Encode(content); err != nil {
		return nil, fmt.Errorf("hash content: %w", err)
	}
	return sum.Sum(nil), nil
}

// onlyConfig reports whether nothing but the content of configFiles is to be written.
func onlyConfig(reasons []ssa.Reason) bool {
	return len(reasons) == 1 && strings.Contains(reasons[0].Path, AnnotationConfigHash)
}
