package differential_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

type content = map[string]any

// config is an apply configuration as plain content.
type config content

func (config) IsApplyConfiguration() {}

var _ runtime.ApplyConfiguration = config{}

// identifying are fields by which lists tell their items apart: content without them is refused by all sides.
var identifying = map[string]bool{
	"key": true, "second": true, "third": true, "type": true, "name": true, "apiVersion": true, "kind": true,
	"containerPort": true, "port": true, "matchLabels": true, "selector": true, "mountPath": true, "uid": true,
}

// copied is a deep copy with numbers as they are.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := content{}
		for name, field := range v {
			c[name] = copied(field)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, item := range v {
			c[i] = copied(item)
		}
		return c
	}
	return v
}

// decoded is v as it comes back from JSON.
func decoded(v any) content {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var c content
	if err := utiljson.Unmarshal(raw, &c); err != nil {
		panic(err)
	}
	return c
}

// varied is before, as it was or reordered or a part of it or with a part of fresh, or fresh.
func varied(r *rand.Rand, before, fresh content) content {
	if before == nil {
		return fresh
	}
	v := copied(before).(content)
	switch pick := r.IntN(100); {
	case pick < 50:
	case pick < 62:
		shuffle(r, v)
	case pick < 75:
		thinOut(r, v)
	case pick < 90:
		for _, name := range slices.Sorted(maps.Keys(fresh)) {
			if r.IntN(3) == 0 {
				v[name] = fresh[name]
			}
		}
	default:
		return fresh
	}
	return v
}

// shuffle puts the lists in v into another order.
func shuffle(r *rand.Rand, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			shuffle(r, v[name])
		}
	case []any:
		r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		for _, item := range v {
			shuffle(r, item)
		}
	}
}

// thinOut removes some fields and items from v and returns what is left.
func thinOut(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !identifying[name] && r.IntN(8) == 0 {
				delete(v, name)
				continue
			}
			v[name] = thinOut(r, v[name])
		}
	case []any:
		kept := make([]any, 0, len(v))
		for _, item := range v {
			if r.IntN(8) > 0 {
				kept = append(kept, thinOut(r, item))
			}
		}
		return kept
	}
	return v
}

// withNulls replaces some fields of v by null, which removes them in a merge patch.
func withNulls(r *rand.Rand, v content) content {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch field := v[name].(type) {
		case map[string]any:
			if r.IntN(6) > 0 {
				withNulls(r, field)
				continue
			}
			v[name] = nil
		default:
			if r.IntN(4) == 0 {
				v[name] = nil
			}
		}
	}
	return v
}

// withoutEmpties is v without null and without empty maps and lists.
func withoutEmpties(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := content{}
		for name, field := range v {
			if field = withoutEmpties(field); field != nil {
				c[name] = field
			}
		}
		if len(c) > 0 {
			return c
		}
		return nil
	case []any:
		var c []any
		for _, item := range v {
			c = append(c, withoutEmpties(item))
		}
		if len(c) > 0 {
			return c
		}
		return nil
	}
	return v
}

// pointers are the JSON pointers to all parts of v.
func pointers(at string, v any) []string {
	var found []string
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p := at + "/" + escape.Replace(name)
			found = append(append(found, p), pointers(p, v[name])...)
		}
	case []any:
		for i, item := range v {
			p := at + "/" + encoded(i)
			found = append(append(found, p), pointers(p, item)...)
		}
	}
	return found
}
