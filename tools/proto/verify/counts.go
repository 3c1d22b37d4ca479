package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

type counts struct {
	services, methods, messages, fields, enums, enumValues, options int
}

func (c counts) String() string {
	return fmt.Sprintf("%d services, %d methods, %d messages, %d fields, %d enums, %d enum values, %d options set",
		c.services, c.methods, c.messages, c.fields, c.enums, c.enumValues, c.options)
}

func count(file *descriptorpb.FileDescriptorProto) counts {
	total := counts{services: len(file.GetService())}
	for _, service := range file.GetService() {
		total.methods += len(service.GetMethod())
	}
	total.addMessages(file.GetMessageType())
	total.addEnums(file.GetEnumType())
	for path := range factsOf(file) {
		if isOption(path) {
			total.options++
		}
	}
	return total
}

func (c *counts) addMessages(messages []*descriptorpb.DescriptorProto) {
	for _, message := range messages {
		if message.GetOptions().GetMapEntry() {
			continue // How a map field is stored; nobody wrote this message.
		}
		c.messages++
		c.fields += len(message.GetField())
		c.addMessages(message.GetNestedType())
		c.addEnums(message.GetEnumType())
	}
}

func (c *counts) addEnums(enums []*descriptorpb.EnumDescriptorProto) {
	c.enums += len(enums)
	for _, enum := range enums {
		c.enumValues += len(enum.GetValue())
	}
}

func isOption(path string) bool {
	return strings.Contains(path, ": option ") && !strings.HasSuffix(path, ": option map_entry")
}
