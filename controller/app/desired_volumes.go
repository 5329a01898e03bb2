package app

import (
	"fmt"
	"path"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// volumes are those of spec.volumes and of spec.configFiles.
func volumes(spec *quellv1alpha1.AppSpec) []corev1.Volume {
	var list []corev1.Volume
	for _, v := range spec.Volumes {
		list = append(list, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
			ConfigMap: v.ConfigMap, Secret: v.Secret, EmptyDir: v.EmptyDir, PersistentVolumeClaim: v.PersistentVolumeClaim,
			Projected: v.Projected, CSI: v.CSI, HostPath: v.HostPath, NFS: v.NFS,
		}})
	}
	for _, f := range spec.ConfigFiles {
		list = append(list, corev1.Volume{Name: f.Name, VolumeSource: configSource(f)})
	}
	return list
}

func configSource(f quellv1alpha1.AppConfigFiles) corev1.VolumeSource {
	if f.Secret != "" {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: f.Secret}}
	}
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: f.ConfigMap}}}
}

// volumeMounts are those of the application's container: spec.volumeMounts and spec.configFiles.
func volumeMounts(spec *quellv1alpha1.AppSpec) []corev1.VolumeMount {
	var list []corev1.VolumeMount
	list = append(list, spec.VolumeMounts...)
	for _, f := range spec.ConfigFiles {
		list = append(list, corev1.VolumeMount{Name: f.Name, MountPath: f.MountPath, SubPath: f.SubPath, ReadOnly: true})
	}
	return list
}

// distinctVolumes refuses two volumes of one name.
func distinctVolumes(spec *quellv1alpha1.AppSpec) error {
	var claims []claim
	for _, v := range spec.Volumes {
		claims = append(claims, claim{"spec.volumes", fmt.Sprintf("volume %q", v.Name)})
	}
	for _, f := range spec.ConfigFiles {
		claims = append(claims, claim{"spec.configFiles", fmt.Sprintf("volume %q", f.Name)})
	}
	return distinct(claims, "rename one of them")
}

// distinctMounts refuses two mounts in one place of the application's container.
func distinctMounts(spec *quellv1alpha1.AppSpec) error {
	var claims []claim
	for _, m := range spec.VolumeMounts {
		claims = append(claims, claim{fmt.Sprintf("spec.volumeMounts %q", m.Name), "mounted at " + path.Clean(m.MountPath)})
	}
	for _, f := range spec.ConfigFiles {
		claims = append(claims, claim{fmt.Sprintf("spec.configFiles %q", f.Name), "mounted at " + path.Clean(f.MountPath)})
	}
	return distinct(claims, "give one of them another mountPath")
}
