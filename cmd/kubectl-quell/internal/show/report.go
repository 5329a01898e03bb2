package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// APIVersion of every report type.
const APIVersion = "cli.quell.dev/v1alpha1"

// Output is the -o flag and what belongs to it.
type Output struct {
	// Format as given by the user.
	Format    string
	wide      bool
	templates *genericclioptions.KubeTemplatePrintFlags
}

// NewOutput makes the flag; wide says whether the command's own text has a wide form.
func NewOutput(wide bool) *Output {
	return &Output{wide: wide, templates: genericclioptions.NewKubeTemplatePrintFlags()}
}

// AddFlags adds the flag to a command.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "output format, one of: "+strings.Join(o.formats(), ", "))
	o.templates.AddFlags(cmd)
	Choices(cmd, "output", o.formats()...)
}

func (o *Output) formats() []string { return append(o.ownFormats(), o.templates.AllowedFormats()...) }

// ownFormats are those without a template.
func (o *Output) ownFormats() []string {
	if o.wide {
		return []string{"wide", "json", "yaml"}
	}
	return []string{"json", "yaml"}
}

// Wide reports whether the wide form was asked for.
func (o *Output) Wide() bool { return o.Format == "wide" }

// IsReport reports whether a report is to be printed instead of the command's own text.
func (o *Output) IsReport() bool { return o.Format != "" && o.Format != "wide" }

// Validate refuses formats that do not exist. As with kubectl get, --template alone is a go-template.
func (o *Output) Validate() error {
	hasTemplate := *o.templates.TemplateArgument != ""
	if hasTemplate && o.Format == "" {
		o.Format = "go-template"
	}
	if o.Format == "" || slices.Contains(o.ownFormats(), o.Format) {
		if hasTemplate {
			return fmt.Errorf("--template is for -o go-template and the like, not for -o %s", o.Format)
		}
		return nil
	}
	_, err := o.templates.ToPrinter(o.Format)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("-o must be one of %s, is %q", strings.Join(o.formats(), ", "), o.Format)
	}
	if err != nil {
		return fmt.Errorf("-o %s: %w", o.Format, err)
	}
	return nil
}

// Print writes a report, which is a type with apiVersion and kind. JSON is written with escapes, so that it is the same data
// and harmless on a terminal; the other formats are exact in a file or pipe and escaped on a terminal.
func (o *Output) Print(report any, out io.Writer) error {
	raw, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	var text bytes.Buffer
	if err := o.write(&text, escapeJSON(raw)); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if o.Format != "json" && printers.IsTerminal(out) {
		_, err = io.WriteString(out, EscapeLines(text.String()))
	} else {
		_, err = out.Write(text.Bytes())
	}
	return err
}

func (o *Output) write(text *bytes.Buffer, raw []byte) error {
	switch o.Format {
	case "json":
		if err := json.Indent(text, raw, "", "  "); err != nil {
			return err
		}
		return text.WriteByte('\n')
	case "yaml":
		converted, err := yaml.JSONToYAML(raw)
		text.Write(converted)
		return err
	}
	printer, err := o.templates.ToPrinter(o.Format)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return err
	}
	return printer.PrintObj(u, text)
}

// escapeJSON writes what does not print as \u escapes; in JSON that is inside strings only.
func escapeJSON(raw []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(raw) {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}
