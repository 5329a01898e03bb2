package manifest

import "testing"

func TestSimilarNames(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"argocd", "argocd-controller"}: true, {"Argo-CD", "argocd"}: true, {"my-operater", "my-operator"}: true, {"ci", "CI"}: true,
		{"ci", "cicd"}: false, {"helm", "flux"}: false, {"kubectl", "kubelet"}: false, {"kubectl", "kube-controller-manager"}: false, {"", "x"}: false,
	} {
		if isSimilar(pair[0], pair[1]) != want || isSimilar(pair[1], pair[0]) != want {
			t.Errorf("%q: not %t", pair, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"", "ab"}: 2, {"kitten", "sitting"}: 3, {"abc", "acb"}: 2, {"same", "same"}: 0} {
		if got := distance(pair[0], pair[1]); got != want || distance(pair[1], pair[0]) != want {
			t.Errorf("%q: %d, want %d", pair, got, want)
		}
	}
}
