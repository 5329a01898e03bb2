package show

import "github.com/spf13/cobra"

// Choices has a shell complete a flag to the values that it takes. It panics when the command has no such flag.
func Choices(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
