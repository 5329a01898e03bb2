package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// CompleteTypes completes a first argument to the types that the API server has, and TYPE/ or a second argument to names.
// It says nothing rather than fail.
func CompleteTypes(f *frame.Frame) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		kind, _, slashed := strings.Cut(toComplete, "/")
		switch {
		case len(args) == 0 && slashed:
			return matching(prefixed(kind+"/", objectNames(f, kind)), toComplete), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 0:
			return matching(typeNames(f), toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case len(args) == 1 && !strings.Contains(args[0], "/"):
			return matching(objectNames(f, args[0]), toComplete), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteTypesOnly completes each argument to the types that the API server has.
func CompleteTypesOnly(f *frame.Frame) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return matching(typeNames(f), toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteConfig completes the flags that name namespaces, and the parts of a kubeconfig file.
func CompleteConfig(f *frame.Frame, root *cobra.Command) {
	for flag, names := range map[string]func() []string{
		"namespace": func() []string { return objectNames(f, "namespaces") },
		"context":   func() []string { return slices.Collect(maps.Keys(kubeconfig(f).Contexts)) },
		"cluster":   func() []string { return slices.Collect(maps.Keys(kubeconfig(f).Clusters)) },
		"user":      func() []string { return slices.Collect(maps.Keys(kubeconfig(f).AuthInfos)) },
	} {
		complete := func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return matching(names(), toComplete), cobra.ShellCompDirectiveNoFileComp
		}
		if err := root.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// kubeconfig is empty when it cannot be read.
func kubeconfig(f *frame.Frame) clientcmdapi.Config {
	config, err := f.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return clientcmdapi.Config{}
	}
	return config
}

func typeNames(f *frame.Frame) []string {
	client, err := f.Config.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	lists, _ := client.ServerPreferredResources() // groups that do not answer are not completed
	var found []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				found = append(found, r.Name)
			}
		}
	}
	return found
}

func objectNames(f *frame.Frame, kind string) []string {
	builder, err := (&Selection{}).builder(f)
	if err != nil {
		return nil
	}
	var found []string
	_ = builder.RequestChunksOf(pageSize).ResourceTypeOrNameArgs(true, kind).Do().Visit(each(func(o Object) error {
		found = append(found, o.GetName())
		return nil
	}))
	return found
}

func prefixed(prefix string, texts []string) []string {
	for i := range texts {
		texts[i] = prefix + texts[i]
	}
	return texts
}

func matching(texts []string, prefix string) []string {
	texts = slices.DeleteFunc(texts, func(t string) bool { return !strings.HasPrefix(t, prefix) })
	slices.Sort(texts)
	return slices.Compact(texts)
}
