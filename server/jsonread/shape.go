package jsonread

// Shape is what a read expects of a field. The zero Shape is anything.
type Shape struct {
	Type        string // JSON Schema's word
	Items       string // of an array: the type of all
	Words       []string
	Least, Most *float64
}

// Note is told of each read of a field, whether the object has it or not: the name with its path, such as
// "messages[0].role".
type Note func(name string, s Shape)

// Noted has note told of what is read of f and of the objects within.
func Noted(f *Fields, note Note) *Fields {
	f.note = note
	return f
}
