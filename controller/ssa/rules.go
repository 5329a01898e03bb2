package ssa

import (
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Rule says what an apply does about a field that others own with another value. A field that others own with the same
// value is no conflict: it has several owners.
type Rule string

// The rules.
const (
	// Force takes the field. It is in force where no other rule is given.
	Force Rule = "Force"
	// Yield lets the others' value stand: the field is left out of what is applied for as long as somebody else owns it with
	// another value, and stated again when nobody does. What is left out always belongs to somebody else, so nothing falls
	// back to its default; see Result.Yielded.
	Yield Rule = "Yield"
	// Report applies nothing of the object: the outcome is Conflicted. It is also what becomes of a field that has another name in the API
	// version in which its owner wrote it, unless all fields that the apply would change are under Force: which of them it is, only
	// the API server knows.
	Report Rule = "Report"
)

// Rules are the rules for one object; the zero value forces everything. Others than Force need a cache that keeps
// managedFields: without, conflicts are only known from the API server's refusals, at the pace of Options.Contention.
type Rules struct {
	// Default rules where no path does; "" means Force.
	Default Rule
	// Paths are exceptions from Default, in any order.
	Paths []PathRule
}

// PathRule rules one field and all that is within it. Of several that fit a field, the one with the longest path counts, of
// several for one path the last.
type PathRule struct {
	// Path of the field as fieldowners.ParsePath reads it; of a list item's key a part is enough.
	Path string
	Rule Rule
}

// Of is the rule for a field. The error, an InvalidContentError, names a path that cannot be read.
func (r Rules) Of(field fieldpath.Path) (Rule, error) {
	v, err := r.read()
	return v.of(field), err
}

// key identifies rules; "" when all are Force.
func (r Rules) key() string {
	if r.forceAll() {
		return ""
	}
	return fmt.Sprintf("%s%q", r.Default, r.Paths)
}

// mark is a digest of content under these rules.
func (r Rules) mark(content digest) digest {
	if key := r.key(); key != "" {
		return digestOf(string(content[:]) + key)
	}
	return content
}

func (r Rules) forceAll() bool {
	all := isForce(r.Default)
	for _, p := range r.Paths {
		all = all && isForce(p.Rule)
	}
	return all
}

func isForce(r Rule) bool { return r == Force || r == "" }

// verdicts are rules with their paths read.
type verdicts struct {
	Rules
	paths []fieldpath.Path
}

// read reads the paths. The error is an InvalidContentError and names the path.
func (r Rules) read() (verdicts, error) {
	v := verdicts{Rules: r}
	for _, p := range r.Paths {
		path, err := fieldowners.ParsePath(p.Path)
		if err != nil {
			return verdicts{}, Invalid("conflict rule: %v", err)
		}
		v.paths = append(v.paths, path)
	}
	return v, nil
}

// of is the rule for a field.
func (v verdicts) of(field fieldpath.Path) Rule {
	rule, longest := v.Default, -1
	for i, path := range v.paths {
		if len(path) >= longest && isWithin(field, path) {
			rule, longest = v.Paths[i].Rule, len(path)
		}
	}
	if rule == "" {
		return Force
	}
	return rule
}

// strictest is the rule for a field that can only be left or taken as a whole: of those for it and for what is within it Report comes first,
// then Force.
func (v verdicts) strictest(field fieldpath.Path) Rule {
	rule := v.of(field)
	for i, path := range v.paths {
		switch within := v.Paths[i].Rule; {
		case len(path) <= len(field) || !reachesInto(path, field):
		case within == Report:
			return Report
		case isForce(within) && rule == Yield:
			rule = Force
		}
	}
	return rule
}

// forces reports whether a field and all that is within it may be taken.
func (v verdicts) forces(field fieldpath.Path) bool {
	for i, path := range v.paths {
		if reachesInto(path, field) && !isForce(v.Paths[i].Rule) {
			return false
		}
	}
	return v.of(field) == Force
}

func isWithin(field, top fieldpath.Path) bool {
	if len(field) < len(top) {
		return false
	}
	for i, e := range top {
		if !e.Equals(field[i]) && !isPartOf(e.Key, field[i].Key) {
			return false
		}
	}
	return true
}

// reachesInto reports whether a path, of whose list items' keys a part is enough, is that of a field or of something within it.
func reachesInto(path, field fieldpath.Path) bool {
	return len(path) >= len(field) && isWithin(field, path[:len(field)])
}

// isPartOf reports whether a list item's key has all the fields of another one: keys have parts that people leave to their default.
func isPartOf(part, key *value.FieldList) bool {
	return part != nil && key != nil && !slices.ContainsFunc(*part, func(p value.Field) bool {
		return !slices.ContainsFunc(*key, func(k value.Field) bool { return k.Name == p.Name && value.Equals(k.Value, p.Value) })
	})
}
