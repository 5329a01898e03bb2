package fieldowners

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// bareName are the field names that need no quotes. A name with a dot does: unquoted it would read as two names.
var bareName = regexp.MustCompile(`^[A-Za-z0-9_$/:@+-]+$`)

// FormatPath writes a path in the notation of the API server's conflict messages, such as
// .spec.template.spec.containers[name="web"].image, but for field names with dots or other marks, which it quotes:
// .metadata.labels["app.kubernetes.io/name"]. Every path then has one form, ParsePath reads it back, and nothing in it can
// move a terminal's cursor. The items of lists are [key=value,...] in a map list, [=value] in a set and [0] by index. The
// path of the whole object is ".".
func FormatPath(path fieldpath.Path) string {
	if len(path) == 0 {
		return "."
	}
	var b strings.Builder
	for _, e := range path {
		b.WriteString(formatElement(e))
	}
	return b.String()
}

func formatElement(e fieldpath.PathElement) string {
	switch {
	case e.FieldName != nil && bareName.MatchString(*e.FieldName):
		return "." + *e.FieldName
	case e.FieldName != nil:
		return "[" + strconv.Quote(*e.FieldName) + "]"
	case e.Key != nil:
		return "[" + formatKey(*e.Key) + "]"
	case e.Value != nil:
		return "[=" + formatValue(*e.Value) + "]"
	case e.Index != nil:
		return "[" + strconv.Itoa(*e.Index) + "]"
	}
	return ""
}

func formatKey(key value.FieldList) string {
	fields := make([]string, len(key))
	for i, f := range key {
		name := f.Name
		if !isKeyName(name) {
			name = strconv.Quote(name)
		}
		fields[i] = name + "=" + formatValue(f.Value)
	}
	return strings.Join(fields, ",")
}

// isKeyName excludes what would read as an index.
func isKeyName(name string) bool {
	_, err := strconv.Atoi(name)
	return err != nil && bareName.MatchString(name)
}

func formatValue(v value.Value) string {
	if !v.IsList() && !v.IsMap() {
		return value.ToString(v)
	}
	raw, err := value.ToJSON(v)
	if err != nil {
		return "null"
	}
	return escapeJSON(string(raw))
}

// escapeJSON writes what does not print as \u escapes; in JSON that can only be inside a string.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// ParsePath reads the notation of FormatPath; the leading dot may be left out. The error says at which byte reading ended
// and why.
func ParsePath(text string) (fieldpath.Path, error) {
	if text == "." {
		return fieldpath.Path{}, nil
	}
	p := pathParser{rest: text}
	if text != "" && text[0] != '.' && text[0] != '[' {
		p.rest = "." + text
	}
	path := fieldpath.Path{}
	for p.rest != "" {
		e, err := p.element()
		if err != nil {
			return nil, fmt.Errorf("path %q: at byte %d: %w", text, max(0, len(text)-len(p.rest)), err)
		}
		path = append(path, e)
	}
	if len(path) == 0 {
		return nil, errors.New("path is empty; the whole object is \".\"")
	}
	return path, nil
}

type pathParser struct{ rest string }

func (p *pathParser) element() (e fieldpath.PathElement, err error) {
	if p.take(".") {
		name, err := p.name(".[")
		return fieldpath.FieldNameElement(name), err
	}
	if !p.take("[") {
		return e, errors.New("expected . or [")
	}
	e, err = p.brackets()
	if err == nil && !p.take("]") {
		err = errors.New("expected ]")
	}
	return e, err
}

// brackets reads what is between them: an index, =value, "field name" or name=value,...
func (p *pathParser) brackets() (fieldpath.PathElement, error) {
	switch {
	case p.take("="):
		v, err := p.value()
		return fieldpath.PathElement{Value: &v}, err
	case strings.HasPrefix(p.rest, "]"):
		return fieldpath.KeyElement(), nil
	}
	name, quoted, err := p.keyName()
	if err != nil {
		return fieldpath.PathElement{}, err
	}
	if p.take("=") {
		return p.key(name)
	}
	if quoted {
		return fieldpath.FieldNameElement(name), nil
	}
	index, err := strconv.Atoi(name)
	if err != nil {
		return fieldpath.PathElement{}, fmt.Errorf("%q is no index; write [name=value], [=value] or [\"field name\"]", name)
	}
	return fieldpath.IndexElement(index), nil
}

// key reads the fields of a map list's key from the value of the first one on.
func (p *pathParser) key(name string) (fieldpath.PathElement, error) {
	key := value.FieldList{}
	for {
		v, err := p.value()
		if err != nil {
			return fieldpath.PathElement{}, err
		}
		key = append(key, value.Field{Name: name, Value: v})
		if !p.take(",") {
			key.Sort()
			return fieldpath.PathElement{Key: &key}, nil
		}
		if name, _, err = p.keyName(); err != nil {
			return fieldpath.PathElement{}, err
		}
		if !p.take("=") {
			return fieldpath.PathElement{}, errors.New("expected =")
		}
	}
}

func (p *pathParser) keyName() (name string, quoted bool, err error) {
	if strings.HasPrefix(p.rest, `"`) {
		name, err = p.quoted()
		return name, true, err
	}
	name, err = p.name("=],")
	return name, false, err
}

// name reads an unquoted name up to one of the ends.
func (p *pathParser) name(ends string) (string, error) {
	name := p.rest
	if i := strings.IndexAny(name, ends); i >= 0 {
		name = name[:i]
	}
	if name == "" {
		return "", errors.New("expected a name")
	}
	if !bareName.MatchString(name) {
		return "", fmt.Errorf("write the name %q in brackets and quotes: [%q]", name, name)
	}
	p.rest = p.rest[len(name):]
	return name, nil
}

func (p *pathParser) quoted() (string, error) {
	literal, err := strconv.QuotedPrefix(p.rest)
	if err != nil {
		return "", errors.New("expected a quoted string")
	}
	p.rest = p.rest[len(literal):]
	return strconv.Unquote(literal)
}

// value reads a string as Go quotes it, which is how the API server writes it, or any other JSON value.
func (p *pathParser) value() (value.Value, error) {
	if strings.HasPrefix(p.rest, `"`) {
		s, err := p.quoted()
		return value.NewValueInterface(s), err
	}
	decoder := json.NewDecoder(strings.NewReader(p.rest))
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return nil, errors.New("expected a value: \"text\", a number, true, false or null")
	}
	p.rest = p.rest[decoder.InputOffset():]
	return value.FromJSON(raw)
}

func (p *pathParser) take(prefix string) bool {
	rest, found := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return found
}
