package storm

import "github.com/hduolab/quell/controller/fieldowners"

// Difference is what one write did to an object.
type Difference struct {
	// Writer is empty where managedFields do not tell; IsLikely is set where the writer was inferred from who owns the fields.
	Writer   fieldowners.Owner
	IsLikely bool
	// Fields that differ, at most 8, and More, how many there are besides. Without any, nothing but resourceVersion and managedFields
	// changed.
	Fields []FieldDifference
	More   int
}

// FieldDifference is one field that differs.
type FieldDifference struct {
	// Path as fieldowners.FormatPath writes it.
	Path string
	// Before and After in JSON, shortened; <absent>, and <hidden> for the content of a Secret. Where metadata alone are known they are
	// the field's owners.
	Before, After string
}

// Compare tells what the write did that made the newer of two consecutive versions of an object. It keeps nothing.
func Compare(older, newer Change) Difference {
	entries := fieldowners.Parse(older.ManagedFields)
	t := track{last: &older, entries: entries}
	s := t.compare(&newer, parse(newer.ManagedFields, older.ManagedFields, entries))
	d := Difference{Writer: s.writer, IsLikely: s.isLikely, More: s.more}
	for _, c := range s.changes {
		d.Fields = append(d.Fields, FieldDifference{Path: c.name, Before: c.before.text, After: c.after.text})
	}
	return d
}
