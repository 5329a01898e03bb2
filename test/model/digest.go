package model

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Digest identifies a state.
type Digest [sha256.Size]byte

// digester walks values of any type, also through fields that are not exported, and hashes what it finds. Pointers are followed, and
// count as the same when they lead to what was met before in the same place. What is no state is left out: functions, channels, locks,
// contexts, and what passes over by skipped.
type digester struct {
	hash hash.Hash
	seen map[visit]uint64
}

type visit struct {
	at  unsafe.Pointer
	typ reflect.Type
}

func newDigester() *digester { return &digester{hash: sha256.New(), seen: map[visit]uint64{}} }

func (d *digester) sum() (sum Digest) {
	d.hash.Sum(sum[:0])
	return sum
}

func (d *digester) number(n uint64) { _ = binary.Write(d.hash, binary.LittleEndian, n) }

func (d *digester) text(s string) {
	d.number(uint64(len(s)))
	d.hash.Write([]byte(s))
}

// skipped reports whether values of a type are no state of an operator: they are the world around it, or the same for ever.
func skipped(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, p := range []string{
		"sync", "context", "github.com/hduolab/quell/test/model", "k8s.io/utils/clock/testing", "k8s.io/client-go/tools/events",
		"k8s.io/apimachinery/pkg/util/managedfields/internal", "sigs.k8s.io/structured-merge-diff/v6/schema", "regexp",
		"github.com/prometheus/client_golang/prometheus",
	} {
		if t.PkgPath() == p {
			return true
		}
	}
	return t.PkgPath() == "k8s.io/apimachinery/pkg/runtime" && t.Name() == "Scheme" || strings.HasPrefix(t.String(), "atomic.noCopy")
}

func (d *digester) value(v reflect.Value) {
	if !v.IsValid() {
		d.text("nil")
		return
	}
	if skipped(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		d.text(fmt.Sprint(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		d.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		d.text(fmt.Sprint(v.Float()))
	case reflect.String:
		d.text(v.String())
	case reflect.Interface:
		d.inner(v.Elem())
	case reflect.Pointer:
		d.pointer(v)
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		d.number(uint64(v.Len()))
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Map:
		d.entries(v)
	default:
		panic(fmt.Sprintf("model: cannot hash a %s", v.Type()))
	}
}

func (d *digester) inner(v reflect.Value) {
	if v.IsValid() {
		d.text(v.Type().String())
	}
	d.value(v)
}

func (d *digester) pointer(v reflect.Value) {
	if v.IsNil() {
		d.text("nil")
		return
	}
	at := visit{v.UnsafePointer(), v.Type()}
	if n, found := d.seen[at]; found {
		d.number(n)
		return
	}
	d.seen[at] = uint64(len(d.seen)) + 1
	d.value(v.Elem())
}

// entries hashes a map in the order of its keys, each of which must be hashable by itself.
func (d *digester) entries(v reflect.Value) {
	type entry struct {
		key   string
		value reflect.Value
	}
	var all []entry
	for i := v.MapRange(); i.Next(); {
		one := newDigester()
		one.value(i.Key())
		sum := one.sum()
		all = append(all, entry{string(sum[:]), i.Value()})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	d.number(uint64(len(all)))
	for _, e := range all {
		d.text(e.key)
		d.value(e.value)
	}
}
