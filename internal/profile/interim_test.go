package profile

import "reflect"

func serverTypes(s *shape, t reflect.Type) (object, bool) { return nil, false }
func serverTypeName(t reflect.Type) (string, bool)        { return "", false }
