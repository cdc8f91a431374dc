package fetch

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// announcedType returns the media type of an answer, without parameters; empty if there is none.
func announcedType(header http.Header) string {
	t, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	if t == "image/jpg" || t == "image/pjpeg" {
		return "image/jpeg"
	}
	return t
}

// plainImages are the types of images that always begin with bytes by which they are recognised.
var plainImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}

// generalTypes say nothing about the content.
var generalTypes = []string{"", "application/octet-stream", "binary/octet-stream", "application/binary", "application/x-binary", "unknown/unknown", "application/unknown"}

// judgeType returns the type of a resource from the announced type and its first bytes, and a problem if they contradict each other: servers and proxies send error
// pages with status 200 and the type of what was asked for.
func judgeType(announced string, first []byte) (actual, problem string) {
	seen, _, _ := mime.ParseMediaType(http.DetectContentType(first))
	isImage := slices.Contains(plainImages, seen)
	switch {
	case slices.Contains(generalTypes, announced):
		return seen, ""
	case isImage && strings.HasPrefix(announced, "image/"):
		return seen, "" // many servers announce one kind of image and send another
	case slices.Contains(plainImages, announced):
		return seen, fmt.Sprintf("it is announced as %s and is %s", announced, seen)
	case seen == "text/html" && !mayBeHTML(announced):
		return seen, fmt.Sprintf("it is announced as %.60s and is an HTML page", announced)
	}
	return announced, ""
}

// mayBeHTML reports whether content of a type may begin as an HTML page does.
func mayBeHTML(announced string) bool {
	return strings.HasPrefix(announced, "text/") || strings.Contains(announced, "xml") || strings.Contains(announced, "html") || strings.HasPrefix(announced, "message/") ||
		strings.HasPrefix(announced, "multipart/")
}

// matches reports whether a type is the expected one, which may be image/* or */*.
func matches(want, actual string) bool {
	want, _, _ = mime.ParseMediaType(want)
	kind, anyOf := strings.CutSuffix(want, "/*")
	return want == actual || want == "image/jpg" && actual == "image/jpeg" || anyOf && (kind == "*" || strings.HasPrefix(actual, kind+"/"))
}
