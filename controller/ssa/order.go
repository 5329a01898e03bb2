package ssa

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// arrange returns value with the items of its map and set lists in a fixed order: those that live has too in live's
// order, then the others by key. Order is a write to the API server although it is nobody's field, so an applier that
// sends another order than it finds makes a new version each time, and two of them flip for ever without a conflict.
// In a status nothing is meant by the order, so it is sent as arranged. In an object itself it can be (init containers run
// in their order, environment variables refer to earlier ones), so there the caller's order is sent, and is one more
// reason to write when live has another one.
//
// Atomic lists keep their order. value is not changed; parts that need no arranging are shared with it.
func arrange(s *schema.Schema, ref schema.TypeRef, value, live any) any {
	atom, ok := s.Resolve(ref)
	if !ok {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		liveMap, _ := live.(map[string]any)
		return arrangeMap(s, atom.Map, v, liveMap)
	case []any:
		liveList, _ := live.([]any)
		return arrangeList(s, atom.List, v, liveList)
	}
	return value
}

func arrangeMap(s *schema.Schema, m *schema.Map, value, live map[string]any) map[string]any {
	if m == nil || m.ElementRelationship == schema.Atomic {
		return value
	}
	arranged := make(map[string]any, len(value))
	for name, field := range value {
		ref := m.ElementType
		if f, ok := m.FindField(name); ok {
			ref = f.Type
		}
		arranged[name] = arrange(s, ref, field, live[name])
	}
	return arranged
}

func arrangeList(s *schema.Schema, l *schema.List, value, live []any) []any {
	if l == nil || l.ElementRelationship != schema.Associative {
		return value
	}
	position, liveItem := make(map[string]int, len(live)), make(map[string]any, len(live))
	for i, item := range live {
		k := itemKey(s, l, item)
		position[k], liveItem[k] = i, item
	}
	keyed := make(map[string]any, len(value))
	for _, item := range value {
		k := itemKey(s, l, item)
		keyed[k] = arrange(s, l.ElementType, item, liveItem[k])
	}
	arranged := make([]any, 0, len(value))
	for _, k := range slices.SortedFunc(maps.Keys(keyed), byPosition(position)) {
		arranged = append(arranged, keyed[k])
	}
	return arranged
}

// moved tells which lists have other orders in value and in arranged, which is value in live's order.
func moved(path string, value, arranged map[string]any) []Reason {
	var reasons []Reason
	for _, name := range slices.Sorted(maps.Keys(value)) {
		field := path + "." + name
		switch a := arranged[name].(type) {
		case map[string]any:
			reasons = append(reasons, moved(field, value[name].(map[string]any), a)...)
		case []any:
			if !reflect.DeepEqual(value[name], a) {
				reasons = append(reasons, Reason{Change: Moved, Path: field})
			}
		}
	}
	return reasons
}

// byPosition orders keys by their position, those without one last and by name.
func byPosition(position map[string]int) func(a, b string) int {
	return func(a, b string) int {
		pa, knownA := position[a]
		pb, knownB := position[b]
		switch {
		case knownA && knownB:
			return pa - pb
		case knownA:
			return -1
		case knownB:
			return 1
		}
		return strings.Compare(a, b)
	}
}

// itemKey identifies an item within its list: a set's item by its value, a map list's item by its key fields, which may
// have defaults in the schema. 1 and "1" are two items.
func itemKey(s *schema.Schema, l *schema.List, item any) string {
	fields, ok := item.(map[string]any)
	if !ok || len(l.Keys) == 0 {
		return fmt.Sprintf("%#v", item)
	}
	var b strings.Builder
	for _, key := range l.Keys {
		v, ok := fields[key]
		if !ok {
			v = keyDefault(s, l, key)
		}
		fmt.Fprintf(&b, "%#v;", v)
	}
	return b.String()
}

func keyDefault(s *schema.Schema, l *schema.List, key string) any {
	return schemaDefault(s, l.ElementType, key)
}
