package app

import (
	"cmp"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

func wantsAccount(app *quellv1alpha1.App) bool {
	asked := app.Spec.ServiceAccount
	return asked != nil && asked.Create != nil && *asked.Create
}

// accountName is the name of the ServiceAccount that the App makes, "" when it makes none: one that it only uses is no child.
func accountName(app *quellv1alpha1.App) string {
	if !wantsAccount(app) {
		return ""
	}
	return usedAccount(app)
}

// usedAccount is the name of the ServiceAccount of the App's Pods, "" for the namespace's default.
func usedAccount(app *quellv1alpha1.App) string {
	if app.Spec.ServiceAccount == nil {
		return ""
	}
	return cmp.Or(app.Spec.ServiceAccount.Name, app.Name)
}

// desiredAccount is the full apply configuration of an App's ServiceAccount. Whether its token is mounted is said by the Pods.
func desiredAccount(seen observed) (runtime.ApplyConfiguration, error) {
	app := seen.app
	account := corev1ac.ServiceAccount(accountName(app), app.Namespace)
	account.ObjectMetaApplyConfiguration = childMetadata(app, accountName(app), app.Spec.ServiceAccount.Annotations)
	return account, nil
}
