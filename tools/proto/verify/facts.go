package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// facts holds one line of a descriptor each: a path such as
// "message Volume, field volume_id: number" and the value found there.
type facts map[string]string

// kinds are the words for what a descriptor lists by name.
var kinds = map[protoreflect.Name]string{
	"message_type": "message",
	"nested_type":  "message",
	"enum_type":    "enum",
	"value":        "value",
	"field":        "field",
	"oneof_decl":   "oneof",
	"service":      "service",
	"method":       "method",
	"extension":    "extension",
}

func factsOf(file *descriptorpb.FileDescriptorProto) facts {
	found := facts{}
	found.addMessage("", file.ProtoReflect())
	return found
}

// addMessage walks a descriptor by reflection, so that no property of it, present or future, is forgotten.
func (found facts) addMessage(path string, message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.FullName() == "google.protobuf.FileDescriptorProto.name",
			field.FullName() == "google.protobuf.FileDescriptorProto.source_code_info":
			// Where the file lies and how it is laid out, not what it defines.
		case field.Name() == "oneof_index":
			// Numbered by order in the file, so the name is looked up by addNamed.
		case field.IsList() && kinds[field.Name()] != "":
			found.addNamed(path, kinds[field.Name()], message, value.List())
		case field.IsList():
			found[join(path, string(field.Name()))] = sortedText(field, value.List())
		case field.Name() == "options":
			found.addOptions(path, value.Message())
		case field.Message() != nil:
			found.addMessage(path+", "+string(field.Name()), value.Message())
		default:
			found[join(path, string(field.Name()))] = scalarText(field, value)
		}
		return true
	})
	if unknown := message.GetUnknown(); len(unknown) > 0 {
		found[join(path, "bytes not understood")] = fmt.Sprintf("%x", []byte(unknown))
	}
}

func (found facts) addNamed(path, kind string, parent protoreflect.Message, list protoreflect.List) {
	for i := range list.Len() {
		element := list.Get(i).Message()
		name := element.Get(element.Descriptor().Fields().ByName("name")).String()
		here := strings.TrimPrefix(fmt.Sprintf("%s, %s %s", path, kind, name), ", ")
		found[here] = "defined"
		found.addMessage(here, element)
		if index := element.Descriptor().Fields().ByName("oneof_index"); index != nil && element.Has(index) {
			oneofs := parent.Get(parent.Descriptor().Fields().ByName("oneof_decl")).List()
			oneof := oneofs.Get(int(element.Get(index).Int())).Message()
			found[join(here, "oneof")] = oneof.Get(oneof.Descriptor().Fields().ByName("name")).String()
		}
	}
}

func (found facts) addOptions(path string, options protoreflect.Message) {
	options.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := string(field.Name())
		if field.IsExtension() {
			name = "(" + string(field.FullName()) + ")"
		}
		text := value.String()
		if !field.IsList() {
			text = scalarText(field, value)
		}
		found[join(path, "option "+name)] = text
		return true
	})
	if unknown := options.GetUnknown(); len(unknown) > 0 {
		found[join(path, "option bytes not understood")] = fmt.Sprintf("%x", []byte(unknown))
	}
}

func join(path, property string) string {
	if path == "" {
		return "file: " + property
	}
	return path + ": " + property
}

func sortedText(field protoreflect.FieldDescriptor, list protoreflect.List) string {
	texts := make([]string, list.Len())
	for i := range texts {
		texts[i] = scalarText(field, list.Get(i))
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

func scalarText(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	switch {
	case field.Enum() != nil:
		if known := field.Enum().Values().ByNumber(value.Enum()); known != nil {
			return string(known.Name())
		}
	case field.Message() != nil:
		return rangeText(value.Message())
	}
	return value.String()
}

// rangeText is how reserved and extension ranges are shown. It does not use prototext, whose spacing is random.
func rangeText(message protoreflect.Message) string {
	found := facts{}
	found.addMessage("", message)
	parts := []string{}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		parts = append(parts, strings.TrimPrefix(path, "file: ")+" "+found[path])
	}
	return strings.Join(parts, ", ")
}

// compare lists every path whose value differs or that only one side has, in order of path. Of a part that
// one side lacks altogether only the part itself is listed, not all that belongs to it.
func compare(ours, published facts) []string {
	all := maps.Clone(ours)
	maps.Copy(all, published)
	differences := []string{}
	lacking := []string{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(lacking, func(part string) bool { return belongsTo(path, part) }) {
			continue
		}
		our, isOurs := ours[path]
		their, isPublished := published[path]
		switch {
		case !isPublished:
			differences = append(differences, fmt.Sprintf("%s: not in the published definition (here %s)", path, our))
		case !isOurs:
			differences = append(differences, fmt.Sprintf("%s: lacking here (published %s)", path, their))
		case our != their:
			differences = append(differences, fmt.Sprintf("%s: %s here, published %s", path, our, their))
		}
		if isOurs != isPublished {
			lacking = append(lacking, path)
		}
	}
	return differences
}

func belongsTo(path, part string) bool {
	return strings.HasPrefix(path, part+",") || strings.HasPrefix(path, part+":")
}
