package stormwatch

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// watchDefinitions calls changed whenever a CustomResourceDefinition was made, changed or deleted, until ctx is done. Of the
// objects nothing but names and versions is kept. Without the right to watch them it tries again now and then, quietly: discovery
// once a minute does without.
func watchDefinitions(ctx context.Context, m metadata.Interface, changed func()) {
	gvr := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	informer := metadatainformer.NewFilteredMetadataInformer(m, gvr, metav1.NamespaceAll, 0, nil, nil).Informer()
	log := logf.FromContext(ctx)
	err := informer.SetTransform(onlyNames)
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) {
			log.V(1).Info("CustomResourceDefinitions cannot be watched", "error", err.Error())
		})
	}
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(_ any, isFirstList bool) {
				if !isFirstList {
					changed()
				}
			},
			UpdateFunc: func(older, newer any) {
				if versionOf(older) != versionOf(newer) {
					changed()
				}
			},
			DeleteFunc: func(any) { changed() },
		})
	}
	if err != nil {
		log.Error(err, "CustomResourceDefinitions are not watched")
		return
	}
	informer.RunWithContext(ctx)
}

func onlyNames(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: kept}, nil
}

func versionOf(object any) string {
	if m, ok := object.(metav1.Object); ok {
		return m.GetResourceVersion()
	}
	return ""
}
