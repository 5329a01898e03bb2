package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// overlayField is where the overlay is in an App.
const overlayField = "spec.podTemplate"

// overlayContent is what an overlay may have, besides the directives of a strategic merge.
type overlayContent struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1.PodSpec `json:"spec"`
}

// overlaid is a Pod template with spec.podTemplate merged over it as kubectl patch --type=strategic does, the template itself when
// the App has none. An overlay that cannot be merged, or that changes what the operator needs, is an ssa.InvalidContentError.
func overlaid(app *quellv1alpha1.App, template *corev1.PodTemplateSpec) (*corev1.PodTemplateSpec, error) {
	if app.Spec.PodTemplate == nil {
		return template, nil
	}
	patch := app.Spec.PodTemplate.Raw
	if err := decodeStrict(overlayField, patch, &overlayContent{}, isDirective); err != nil {
		return nil, err
	}
	original, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encode Pod template: %w", err)
	}
	merge := func(patch []byte) ([]byte, error) {
		return strategicpatch.StrategicMergePatch(original, patch, corev1.PodTemplateSpec{})
	}
	merged, err := merge(patch)
	if err != nil {
		at := culprit(overlayField, patch, func(part []byte) bool { _, err := merge(part); return err != nil })
		return nil, ssa.Invalid("%s: %v", at, err)
	}
	result := &corev1.PodTemplateSpec{}
	if err := decodeStrict(overlayField, merged, result); err != nil {
		return nil, err
	}
	return result, cmp.Or(
		keepsOwn(overlayField+".metadata.labels", template.Labels, result.Labels),
		keepsOwn(overlayField+".metadata.annotations", template.Annotations, result.Annotations),
		keepsContainer(&result.Spec),
		distinctContainers(&app.Spec, &result.Spec),
		oneSource(&app.Spec, result.Spec.Volumes),
	)
}

// keepsOwn refuses a change of the labels and annotations that the operator sets.
func keepsOwn(field string, before, after map[string]string) error {
	all := maps.Clone(after)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, before)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		was, had := before[key]
		is, has := after[key]
		if isOwnKey(key) && (was != is || had != has) {
			return ssa.Invalid("%s: %s is set by the operator and must stay as it is: remove it from spec.podTemplate", field, key)
		}
	}
	return nil
}

// isOwnKey reports whether only the operator sets a label or an annotation.
func isOwnKey(key string) bool {
	return key == LabelName || key == LabelInstance || key == LabelManagedBy || strings.HasPrefix(key, quellv1alpha1.SchemeGroupVersion.Group+"/")
}

func keepsContainer(pod *corev1.PodSpec) error {
	if slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == containerName }) {
		return nil
	}
	return ssa.Invalid("%s removes container %q, which runs spec.image: leave it in place", overlayField, containerName)
}

// oneSource refuses a volume to which the overlay adds a second source.
func oneSource(spec *quellv1alpha1.AppSpec, volumes []corev1.Volume) error {
	for _, v := range volumes {
		raw, err := json.Marshal(v.VolumeSource)
		if err != nil {
			return fmt.Errorf("encode volume %q: %w", v.Name, err)
		}
		var sources map[string]json.RawMessage
		if err := json.Unmarshal(raw, &sources); err != nil {
			return fmt.Errorf("decode volume %q: %w", v.Name, err)
		}
		if len(sources) > 1 {
			return ssa.Invalid("%s and %s would both give volume %q a source (%s): rename one of them",
				volumeField(spec, v.Name), overlayField, v.Name, strings.Join(slices.Sorted(maps.Keys(sources)), ", "))
		}
	}
	return nil
}

// volumeField is the field of the App that makes a volume.
func volumeField(spec *quellv1alpha1.AppSpec, name string) string {
	if slices.ContainsFunc(spec.ConfigFiles, func(f quellv1alpha1.AppConfigFiles) bool { return f.Name == name }) {
		return "spec.configFiles"
	}
	return "spec.volumes"
}

// isDirective reports whether the last step of a path tells a strategic merge what to do, such as $patch.
func isDirective(path string) bool {
	return strings.HasPrefix(path[strings.LastIndexByte(path, '.')+1:], "$")
}

// decodeStrict decodes the content of a field of the App into a type of Kubernetes. A field that the type does not have, unless
// it is one to ignore, and a value that does not fit are an ssa.InvalidContentError that names the path in the App.
func decodeStrict(field string, raw []byte, into any, ignore ...func(path string) bool) error {
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		at := culprit(field, raw, func(part []byte) bool {
			return kjson.UnmarshalCaseSensitivePreserveInts(part, reflect.New(reflect.TypeOf(into).Elem()).Interface()) != nil
		})
		return ssa.Invalid("%s: %s", at, misfit(err))
	}
	var words []string
	for _, u := range unknown {
		at, ok := errors.AsType[kjson.FieldError](u)
		if ok && slices.ContainsFunc(ignore, func(f func(string) bool) bool { return f(at.FieldPath()) }) {
			continue
		}
		if ok {
			at.SetFieldPath(field + "." + at.FieldPath())
		}
		words = append(words, u.Error())
	}
	if len(words) == 0 {
		return nil
	}
	slices.Sort(words)
	return ssa.Invalid("%s", strings.Join(slices.Compact(words), "; "))
}

// misfit words a value that cannot be decoded.
func misfit(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err.Error()
	}
	want := "a whole number"
	switch wrong.Type.Kind() {
	case reflect.Struct, reflect.Map:
		want = "an object"
	case reflect.Slice:
		want = "a list"
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	}
	return fmt.Sprintf("must be %s, is %s", want, wrong.Value)
}

// culprit is the path of the first part of some JSON that fails on its own, for errors that do not say where they are.
func culprit(path string, raw []byte, fails func([]byte) bool) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return path
	}
	return innermostPart(path, value, func(part any) bool {
		raw, err := json.Marshal(part)
		return err != nil || fails(raw)
	})
}

func innermostPart(path string, value any, fails func(any) bool) string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inside := func(part any) bool { return fails(map[string]any{key: part}) }
			if !fails(map[string]any{}) && inside(v[key]) {
				return innermostPart(path+"."+key, v[key], inside)
			}
		}
	case []any:
		for i, item := range v {
			inside := func(part any) bool { return fails([]any{part}) }
			if !fails([]any{}) && inside(item) {
				return innermostPart(fmt.Sprintf("%s[%d]", path, i), item, inside)
			}
		}
	}
	return path
}
