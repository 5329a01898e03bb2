// Command monitoring checks the manifests of config/prometheus against the metrics that there are: types and field names of
// the manifests, syntax of every query in rules and dashboards, and for each query that every metric exists, that every label
// belongs to the metrics that it is asked of, and that only counters are asked for rates.
//
// It is a module of its own, since Prometheus's parser and the types of the Prometheus Operator are nothing that the operator
// needs.
package main

import (
	"fmt"
	"io"
	"os"
)

const usage = `usage: monitoring MANIFESTS METRICS...

MANIFESTS is the output of kubectl kustomize config/prometheus. METRICS are files in Prometheus's text format, as a metrics
endpoint answers; a metric of a later file hides one of the same name. The type of one that is untyped is not checked.
`

func main() {
	if len(os.Args) < 3 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, metrics []string, out io.Writer) error {
	manifests, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	known := catalog{}
	for _, file := range metrics {
		if err := known.add(file); err != nil {
			return err
		}
	}
	queries, err := decode(manifests)
	if err != nil {
		return err
	}
	faults := check(queries, known)
	for _, fault := range faults {
		fmt.Fprintln(out, fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d faults in %d queries", len(faults), len(queries))
	}
	fmt.Fprintf(out, "%d queries in order\n", len(queries))
	return nil
}
