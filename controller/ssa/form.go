package ssa

import (
	"cmp"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"
)

// maxDepth bounds how deep a value is walked; what is deeper may be a cycle.
const maxDepth = 100

// form writes down Go values, so that what has the same form in one process has the same JSON. The reverse does not hold: a nil list
// and an empty one may be the same JSON, and such values only are compared anew. It takes a quarter of the time of their JSON,
// which is what the steady state of every Applier would cost otherwise.
type form struct {
	bytes []byte
	keys  []string
	// opaque tells that there was something of which the form cannot be told.
	opaque bool
}

var forms = sync.Pool{New: func() any { return &form{} }}

// formOf is a digest of the form of a value, false when it has none.
func formOf(v any) (digest, bool) {
	f := forms.Get().(*form)
	defer forms.Put(f)
	f.bytes, f.opaque = f.bytes[:0], false
	f.dynamic(reflect.ValueOf(v), 0)
	return sum(f.bytes), !f.opaque
}

// dynamic adds a value with its type, for values whose place does not tell it.
func (f *form) dynamic(v reflect.Value, depth int) {
	if !v.IsValid() {
		f.number(0)
		return
	}
	f.number(uint64(reflect.ValueOf(v.Type()).Pointer())) // the type's own address: texts may be those of two types
	f.add(v, depth)
}

// add adds a value, unexported fields too: a type's own MarshalJSON may read them.
func (f *form) add(v reflect.Value, depth int) {
	if f.opaque = f.opaque || depth > maxDepth; f.opaque {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		f.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		f.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		f.number(math.Float64bits(v.Float()))
	case reflect.String:
		f.text(v.String())
	case reflect.Interface:
		f.dynamic(v.Elem(), depth+1)
	case reflect.Pointer:
		if f.bool(!v.IsNil()); !v.IsNil() {
			f.add(v.Elem(), depth+1)
		}
	case reflect.Struct:
		f.fields(v, depth+1)
	case reflect.Slice:
		if f.bool(!v.IsNil()); !v.IsNil() {
			f.items(v, depth+1)
		}
	case reflect.Array:
		f.items(v, depth+1)
	case reflect.Map:
		f.entries(v, depth+1)
	default:
		f.opaque = true
	}
}

func (f *form) fields(v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		f.time(v)
		return
	}
	for i := range v.NumField() {
		f.add(v.Field(i), depth)
	}
}

// time adds the instant and its zone: the rest of a time.Time is no content.
func (f *form) time(v reflect.Value) {
	if f.opaque = !v.CanInterface(); f.opaque {
		return
	}
	at := v.Interface().(time.Time)
	_, zone := at.Zone()
	f.number(uint64(at.Unix()))
	f.number(uint64(at.Nanosecond()))
	f.number(uint64(zone))
}

func (f *form) items(v reflect.Value, depth int) {
	f.number(uint64(v.Len()))
	for i := range v.Len() {
		f.add(v.Index(i), depth)
	}
}

// entries adds a map in the order of its keys.
func (f *form) entries(v reflect.Value, depth int) {
	if f.bool(!v.IsNil()); v.IsNil() {
		return
	}
	f.number(uint64(v.Len()))
	if v.CanInterface() && v.Type() == reflect.TypeFor[map[string]string]() {
		f.texts(v.Interface().(map[string]string))
		return
	}
	if f.opaque = v.Type().Key().Kind() != reflect.String; f.opaque {
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		f.text(key.String())
		f.add(v.MapIndex(key), depth)
	}
}

// texts is entries for the kind of map that most maps are, without allocations.
func (f *form) texts(m map[string]string) {
	f.keys = f.keys[:0]
	for key := range m {
		f.keys = append(f.keys, key)
	}
	slices.Sort(f.keys)
	for _, key := range f.keys {
		f.text(key)
		f.text(m[key])
	}
}

func (f *form) bool(b bool) {
	n := byte(0)
	if b {
		n = 1
	}
	f.bytes = append(f.bytes, n)
}

func (f *form) number(n uint64) { f.bytes = binary.AppendUvarint(f.bytes, n) }

func (f *form) text(s string) {
	f.number(uint64(len(s)))
	f.bytes = append(f.bytes, s...)
}
