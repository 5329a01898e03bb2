package cluster

import (
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/spf13/cobra"
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
