package differential_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type sort string

// The sorts of nodes that a random schema has.
const (
	text         sort = "string"
	moment       sort = "date-time"
	int32s       sort = "int32"
	int64s       sort = "int64"
	number       sort = "number"
	boolean      sort = "boolean"
	intOrString  sort = "int-or-string"
	quantity     sort = "quantity"
	record       sort = "struct"
	dictionary   sort = "map"
	setList      sort = "set"
	mapList      sort = "map list"
	atomicList   sort = "atomic list"
	free         sort = "preserve-unknown-fields"
	embedded     sort = "embedded resource"
	bareMetadata sort = "embedded metadata"
	bare         sort = "object without properties"
)

var scalars = []sort{text, moment, int32s, int64s, number, boolean, intOrString, quantity}

// items of sets. In managedFields the API server rounds whole numbers beyond 2^53, so none is in a set or a key.
var items = []sort{text, moment, int32s, number, boolean, intOrString, quantity}

// shape is one node of a random schema.
type shape struct {
	sort
	nullable bool
	// atomic structs and maps belong to one owner as a whole.
	atomic bool
	// open structs keep fields that they do not declare.
	open bool
	// fallback is the default, nil when there is none.
	fallback any
	fields   map[string]*shape
	item     *shape
	// keys of a map list's items.
	keys []string
}

// newShape draws a schema of at most this depth.
func newShape(r *rand.Rand, depth int) *shape {
	if depth == 0 || r.IntN(100) < 45 {
		return newScalar(r)
	}
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		return newRecord(r, depth-1)
	case 4, 5:
		return &shape{sort: dictionary, item: newShape(r, depth-1), atomic: r.IntN(5) == 0, nullable: r.IntN(6) == 0}
	case 6, 7:
		item := &shape{sort: items[r.IntN(len(items))]}
		return &shape{sort: setList, item: item, nullable: r.IntN(6) == 0}
	case 8, 9, 10:
		return newMapList(r, depth-1)
	case 11, 12:
		return &shape{sort: atomicList, item: newShape(r, depth-1), nullable: r.IntN(6) == 0}
	case 13:
		return &shape{sort: free}
	case 14:
		return &shape{sort: embedded}
	}
	return &shape{sort: []sort{bareMetadata, bare}[r.IntN(2)]}
}

func newScalar(r *rand.Rand) *shape {
	s := &shape{sort: scalars[r.IntN(len(scalars))], nullable: r.IntN(6) == 0}
	if r.IntN(4) == 0 {
		s.fallback = s.value(r)
	}
	return s
}

func newRecord(r *rand.Rand, depth int) *shape {
	s := &shape{sort: record, fields: map[string]*shape{}, nullable: r.IntN(8) == 0, atomic: r.IntN(8) == 0, open: r.IntN(8) == 0}
	for _, name := range someNames(r, 1+r.IntN(5)) {
		s.fields[name] = newShape(r, depth)
	}
	if r.IntN(5) == 0 {
		s.fallback = map[string]any{}
	}
	return s
}

func newMapList(r *rand.Rand, depth int) *shape {
	item := newRecord(r, depth)
	item.nullable, item.atomic, item.open, item.fallback = false, false, false, nil
	list := &shape{sort: mapList, item: item, nullable: r.IntN(8) == 0}
	for i, name := range []string{"key", "second", "third"}[:1+r.IntN(3)] {
		key := &shape{sort: []sort{text, int32s, boolean, text}[r.IntN(4)]}
		if i > 0 && r.IntN(2) == 0 {
			key.fallback = key.value(r)
		}
		item.fields[name] = key
		list.keys = append(list.keys, name)
	}
	return list
}

// names of fields, those that are hard to write in a path among them.
var names = []string{"a", "b", "c", "d", "e", "f", "x.y", "k/s", "true", "0", "über", "with space", "f:g", "spec", "metadata", "items"}

func someNames(r *rand.Rand, n int) []string {
	var some []string
	for _, i := range r.Perm(len(names))[:n] {
		some = append(some, names[i])
	}
	return some
}

// isAssociative reports whether the node is a list whose items have an identity.
func (s *shape) isAssociative() bool { return s.sort == setList || s.sort == mapList }

// properties is the node in the words of a CustomResourceDefinition.
func (s *shape) properties() apiextensionsv1.JSONSchemaProps {
	yes := true
	p := apiextensionsv1.JSONSchemaProps{Type: "object", Nullable: s.nullable}
	if s.fallback != nil {
		raw, err := json.Marshal(s.fallback)
		if err != nil {
			panic(err)
		}
		p.Default = &apiextensionsv1.JSON{Raw: raw}
	}
	if s.atomic {
		p.XMapType = pointer("atomic")
	}
	switch s.sort {
	case record:
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for name, field := range s.fields {
			p.Properties[name] = field.properties()
		}
		if s.open {
			p.XPreserveUnknownFields = &yes
		}
	case dictionary:
		item := s.item.properties()
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &item}
	case setList, mapList, atomicList:
		s.describeList(&p)
	case free:
		p.XPreserveUnknownFields = &yes
	case embedded:
		p.XPreserveUnknownFields, p.XEmbeddedResource = &yes, true
	case bareMetadata:
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{"metadata": {Type: "object"}, "name": {Type: "string"}}
	case bare:
	default:
		s.describeScalar(&p)
	}
	return p
}

func pointer[T any](v T) *T { return &v }

func (s *shape) describeList(p *apiextensionsv1.JSONSchemaProps) {
	item := s.item.properties()
	p.Type, p.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
	p.XListType = pointer(map[sort]string{setList: "set", mapList: "map", atomicList: "atomic"}[s.sort])
	p.XListMapKeys = s.keys
	for _, key := range s.keys {
		if s.item.fields[key].fallback == nil {
			item.Required = append(item.Required, key)
		}
	}
}

func (s *shape) describeScalar(p *apiextensionsv1.JSONSchemaProps) {
	switch s.sort {
	case text:
		p.Type = "string"
	case moment:
		p.Type, p.Format = "string", "date-time"
	case int32s:
		p.Type, p.Format = "integer", "int32"
	case int64s:
		p.Type, p.Format = "integer", "int64"
	case number:
		p.Type = "number"
	case boolean:
		p.Type = "boolean"
	case intOrString:
		p.Type, p.XIntOrString = "", true
	case quantity:
		p.Type, p.XIntOrString = "", true
		p.AnyOf = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
		p.Pattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	}
}

// pools are the values of scalars: few, so that two draws are often equal, and among them those that a decoder may change.
var pools = map[sort][]any{
	text:        {"", "a", "b", "true", "1", "null", "grün & <b>", " "},
	moment:      {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00", "2026-01-02T05:04:05.123456789+02:00"},
	int32s:      {int64(0), int64(1), int64(-1), int64(1<<31 - 1), json.Number("5.0")},
	int64s:      {int64(0), int64(1), int64(1<<53 + 1), int64(-7)},
	number:      {int64(0), 0.5, json.Number("1.0"), json.Number("1e3"), int64(1000), 0.1, -1.25e-7},
	boolean:     {true, false},
	intOrString: {int64(0), int64(80), "80", "", "http", "50%"},
	quantity:    {int64(1), "1", "1000m", "1Gi", "1024Mi", "0", int64(0)},
}

// value draws a value that fits, now and then one that the schema refuses or does not keep.
func (s *shape) value(r *rand.Rand) any {
	if s.nullable && r.IntN(5) == 0 || r.IntN(200) == 0 {
		return nil
	}
	switch s.sort {
	case record:
		return s.recordValue(r)
	case dictionary:
		v := map[string]any{}
		for _, name := range someNames(r, r.IntN(4)) {
			v[name] = s.item.value(r)
		}
		return v
	case setList, mapList, atomicList:
		return s.listValue(r)
	case free, bare:
		return anything(r, 2)
	case embedded:
		return map[string]any{"apiVersion": "v1", "kind": "Any", "metadata": metadataValue(r), "spec": anything(r, 1)}
	case bareMetadata:
		v := map[string]any{"name": "x"}
		if r.IntN(2) == 0 {
			v["metadata"] = metadataValue(r)
		}
		return v
	}
	pool := pools[s.sort]
	return pool[r.IntN(len(pool))]
}

func (s *shape) recordValue(r *rand.Rand) map[string]any {
	v := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		if r.IntN(3) > 0 {
			v[name] = s.fields[name].value(r)
		}
	}
	if s.open && r.IntN(2) == 0 {
		v["unknown"] = anything(r, 1)
	}
	return v
}

func (s *shape) listValue(r *rand.Rand) []any {
	list, seen := []any{}, map[string]bool{}
	for range r.IntN(5) {
		item := s.item.value(r)
		if s.sort == mapList {
			fields, ok := item.(map[string]any)
			if !ok {
				continue
			}
			s.complete(r, fields)
		}
		if id := s.identity(item); s.sort == atomicList || !seen[id] || r.IntN(100) == 0 {
			list, seen[id] = append(list, item), true
		}
	}
	return list
}

// complete gives a map list's item the keys that have no default.
func (s *shape) complete(r *rand.Rand, item map[string]any) {
	for _, key := range s.keys {
		shape := s.item.fields[key]
		if _, set := item[key]; (!set || item[key] == nil) && (shape.fallback == nil || item[key] == nil && set) {
			pool := pools[shape.sort]
			item[key] = pool[r.IntN(len(pool))]
		}
	}
}

// identity names an item of a set or map list.
func (s *shape) identity(item any) string {
	fields, ok := item.(map[string]any)
	if s.sort != mapList || !ok {
		return encoded(normal(item))
	}
	var parts []any
	for _, key := range s.keys {
		v, set := fields[key]
		if !set {
			v = s.item.fields[key].fallback
		}
		parts = append(parts, normal(v))
	}
	return encoded(parts)
}

// normal gives numbers one form.
func normal(v any) any {
	if n, ok := v.(json.Number); ok {
		f, _ := n.Float64()
		v = f
	}
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		return int64(f)
	}
	return v
}

func encoded(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// anything draws content for places without a schema.
func anything(r *rand.Rand, depth int) map[string]any {
	v := map[string]any{}
	for _, name := range someNames(r, r.IntN(4)) {
		switch pick := r.IntN(6); {
		case depth > 0 && pick == 0:
			v[name] = anything(r, depth-1)
		case depth > 0 && pick == 1:
			v[name] = []any{int64(1), "a", anything(r, depth-1), nil}[:r.IntN(5)]
		case pick == 2:
			v[name] = nil
		default:
			sort := scalars[r.IntN(len(scalars))]
			v[name] = pools[sort][r.IntN(len(pools[sort]))]
		}
	}
	return v
}

func metadataValue(r *rand.Rand) map[string]any {
	v := map[string]any{}
	if r.IntN(2) == 0 {
		v["labels"] = map[string]any{"a": "b"}
	}
	if r.IntN(2) == 0 {
		v["name"] = "embedded"
	}
	if r.IntN(3) == 0 {
		v["creationTimestamp"] = nil
	}
	if r.IntN(6) == 0 {
		v["unknown"] = "x"
	}
	return v
}

// inOrderOf is value with the items of its set and map lists that live has too in live's order, the others last.
func (s *shape) inOrderOf(value, live any) any {
	switch v := value.(type) {
	case map[string]any:
		if s == nil || s.atomic {
			return value
		}
		theirs, _ := live.(map[string]any)
		arranged := map[string]any{}
		for name, field := range v {
			arranged[name] = s.below(name).inOrderOf(field, theirs[name])
		}
		return arranged
	case []any:
		if s == nil || !s.isAssociative() {
			return value
		}
		theirs, _ := live.([]any)
		return s.itemsInOrderOf(v, theirs)
	}
	return value
}

func (s *shape) itemsInOrderOf(items, live []any) []any {
	place := func(item any) int {
		id := s.identity(item)
		if i := slices.IndexFunc(live, func(theirs any) bool { return s.identity(theirs) == id }); i >= 0 {
			return i
		}
		return len(live)
	}
	arranged := slices.Clone(items)
	slices.SortStableFunc(arranged, func(a, b any) int { return cmp.Compare(place(a), place(b)) })
	for i, item := range arranged {
		var theirs any
		if at := place(item); at < len(live) {
			theirs = live[at]
		}
		arranged[i] = s.item.inOrderOf(item, theirs)
	}
	return arranged
}

// bare is v without what is empty, in all places that have owners of their own: null, maps, and set and map lists without items.
func (s *shape) bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if s != nil && s.atomic {
			return v
		}
		kept := map[string]any{}
		for name, field := range v {
			below := s.below(name)
			if field = below.bare(field); !below.isEmpty(field) {
				kept[name] = field
			}
		}
		return kept
	case []any:
		if s == nil || s.sort != mapList {
			return v
		}
		kept := make([]any, len(v))
		for i, item := range v {
			kept[i] = s.item.bare(item)
		}
		return kept
	}
	return v
}

// undefaulted is v without what has its default.
func (s *shape) undefaulted(v any) any {
	fields, isMap := v.(map[string]any)
	if !isMap || s == nil || s.atomic {
		return v
	}
	kept := map[string]any{}
	for name, field := range fields {
		below := s.below(name)
		if below == nil || below.fallback == nil || encoded(normal(field)) != encoded(normal(below.fallback)) {
			kept[name] = below.undefaulted(field)
		}
	}
	return kept
}

func (s *shape) below(name string) *shape {
	switch {
	case s == nil:
		return nil
	case s.sort == dictionary:
		return s.item
	}
	return s.fields[name]
}

func (s *shape) isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0 && s != nil && s.isAssociative()
	}
	return false
}
