// Command docs writes docs/kubectl-quell.md from the commands themselves to the standard output.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/command"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	if _, err := os.Stdout.WriteString(markdown()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

const intro = `# kubectl quell

<!-- Made from the commands by make docs; do not edit. -->

%s

`

func markdown() string {
	root := command.New(frame.New(genericiooptions.IOStreams{}, ""))
	var b strings.Builder
	fmt.Fprintf(&b, intro, block(root.Long))
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.Name() != "help" {
			section(&b, cmd)
		}
	}
	b.WriteString("## Flags of all commands\n\n")
	table(&b, root.PersistentFlags())
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func section(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "## %s\n\n%s.\n\n", cmd.Name(), cmd.Short)
	if cmd.Long != "" {
		b.WriteString(block(cmd.Long) + "\n\n")
	}
	fmt.Fprintf(b, "```\n%s\n```\n\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	if cmd.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", unindented(cmd.Example))
	}
	table(b, cmd.NonInheritedFlags())
}

// block makes indented lines of a help text a code block.
func block(text string) string {
	var b strings.Builder
	inCode := false
	for line := range strings.SplitSeq(text, "\n") {
		isCode := strings.HasPrefix(line, "  ")
		if isCode != inCode {
			inCode = isCode
			b.WriteString(map[bool]string{true: "\n```\n", false: "```\n"}[isCode])
		}
		b.WriteString(strings.TrimPrefix(line, "  ") + "\n")
	}
	if inCode {
		b.WriteString("```\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func unindented(example string) string {
	lines := strings.Split(example, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func table(b *strings.Builder, flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.Name != "cache-dir" {
			value = "`" + f.DefValue + "`"
		}
		usage := strings.NewReplacer("|", `\|`, "\n", " ").Replace(f.Usage)
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", name, value, usage))
	})
	if len(rows) > 0 {
		b.WriteString("| flag | default | meaning |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n\n")
	}
}
