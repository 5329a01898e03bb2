package chart_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	config    = "../../../config"
	namespace = "quell-system"
)

// values are those of a release, as a values file has them.
type values = map[string]any

// objects are manifests by kind, namespace and name.
type objects map[string]map[string]any

// render is what 'helm template' does. Every object is one that the API server would decode without a complaint.
func render(t *testing.T, in string, set values) (objects, error) {
	t.Helper()
	chart, err := loader.Load(filepath.Join(config, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "quell", Namespace: in, Revision: 1, IsInstall: true}
	merged, err := util.ToRenderValues(chart, set, release, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), chart, merged)
	if err != nil {
		return nil, err
	}
	all := objects{}
	for path, text := range files {
		if filepath.Ext(path) == ".yaml" {
			all.add(t, text)
		}
	}
	for name, object := range all {
		decode(t, name, object)
	}
	return all, nil
}

// mustRender is render for values that are right.
func mustRender(t *testing.T, in string, set values) objects {
	t.Helper()
	all, err := render(t, in, set)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// shardName is the word in config/shard that a person has sed replace.
var shardName = regexp.MustCompile(`\bNAME\b`)

// kustomize builds folders of config/ for a namespace and a shard.
func kustomize(t *testing.T, folders []string, in, shard string) objects {
	t.Helper()
	all := objects{}
	for _, folder := range folders {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(config, folder))
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		all.add(t, strings.ReplaceAll(shardName.ReplaceAllString(string(text), shard), namespace, in))
	}
	return all
}

// add parses manifests. Two with one name are an error: the second would overwrite the first.
func (o objects) add(t *testing.T, text string) {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		object := map[string]any{}
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		name := nameOf(object)
		if o[name] != nil {
			t.Fatalf("%s is there twice", name)
		}
		o[name] = object
	}
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	return fmt.Sprintf("%v %v %v/%v", object["apiVersion"], object["kind"], metadata["namespace"], metadata["name"])
}

// get decodes the object of a kind and name into its Go type; false when there is none.
func get[T any](t *testing.T, all objects, kind, name string) (T, bool) {
	t.Helper()
	var into T
	for key, object := range all {
		if metadata := object["metadata"].(map[string]any); object["kind"] == kind && metadata["name"] == name {
			decoded, ok := any(decode(t, key, object)).(*T)
			if !ok {
				t.Fatalf("%s is no %T", key, into)
			}
			return *decoded, true
		}
	}
	return into, false
}

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
		apiextensionsv1.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// decode refuses fields that the object's type does not have, and values of another type.
func decode(t *testing.T, name string, object map[string]any) runtime.Object {
	t.Helper()
	raw, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, err := codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return decoded
}
