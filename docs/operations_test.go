package docs_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// helpLine is a flag in a help text: its name, its type if it takes a value, and the default at the end if it is not empty.
var helpLine = regexp.MustCompile(`(?m)^\s+(--[a-z-]+)(?: \S+)?\s{2,}.*?(?:\(default "?([^")]*)"?\))?$`)

// Each flag of the manager has a row with its default, and each row is about a flag.
func TestManagerFlags(t *testing.T) {
	help, err := exec.CommandContext(t.Context(), "go", "run", "../cmd/manager", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(read(t, "operations.md"), "\n## Flags\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var known []string
	for _, m := range helpLine.FindAllStringSubmatch(string(help), -1) {
		known = append(known, m[1])
		if m[2] != "" && !regexp.MustCompile("(?m)^\\| `"+m[1]+"` \\| `?"+regexp.QuoteMeta(m[2])+"`? \\|").MatchString(section) {
			t.Errorf("operations.md does not say that the default of %s is %s", m[1], m[2])
		}
	}
	compareRows(t, "operations.md", known, rowNames(section))
}

// Each resource that the operator has rights on is in the section that tells them.
func TestManagerRights(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "operations.md"), "\n## Rights\n")
	section, _, _ = strings.Cut(section, "\n## ")
	section = strings.ToLower(section)
	resources := regexp.MustCompile(`(?s)\n  resources:\n((?:  - \S+\n)+)`).FindAllStringSubmatch(read(t, "../config/rbac/role.yaml"), -1)
	if len(resources) < 5 {
		t.Fatalf("role.yaml has %d rules only", len(resources))
	}
	for _, m := range resources {
		for _, resource := range strings.Fields(strings.ReplaceAll(m[1], "- ", "")) {
			if name, _, _ := strings.Cut(resource, "/status"); !strings.Contains(section, name) {
				t.Errorf("operations.md does not say what the operator may do with %s", resource)
			}
		}
	}
}
