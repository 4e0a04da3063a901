package store

import (
	"reflect"

	"forge/pipeline"
)

// clone returns a copy of a run that shares no memory that Apply could change.
func clone(run *pipeline.Run) *pipeline.Run {
	next := *run
	cloneInto(reflect.ValueOf(&next).Elem())
	return &next
}

// cloneInto gives v, a copy of its original, slices, maps and pointees of its
// own. Unexported fields (those of time.Time) are immutable and stay.
func cloneInto(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		cloneInto(own.Elem())
		v.Set(own)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		if hasMemory(v.Type().Elem()) {
			for i := range own.Len() {
				cloneInto(own.Index(i))
			}
		}
		v.Set(own)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		own := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(it.Value())
			cloneInto(elem)
			own.SetMapIndex(it.Key(), elem)
		}
		v.Set(own)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				cloneInto(v.Field(i))
			}
		}
	}
}

// hasMemory reports whether values of the type may hold slices, maps or pointers.
func hasMemory(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Struct:
		return true
	}
	return false
}
