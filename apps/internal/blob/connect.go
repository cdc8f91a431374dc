package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	answerCode = regexp.MustCompile(`^[A-Za-z]{1,60}$`)
)

func openBucket(ctx context.Context, place string) (Store, error) {
	name, prefix, _ := strings.Cut(place, "/")
	prefix = strings.TrimSuffix(prefix, "/")
	if !bucketName.MatchString(name) {
		return nil, fmt.Errorf("%.70q is not a valid bucket name: use s3://bucket/prefix", name)
	}
	if prefix != "" {
		if err := checkKey(prefix); err != nil {
			return nil, fmt.Errorf("the prefix in s3://bucket/prefix: %w", err)
		}
		prefix += "/"
	}
	o, host, err := fromEnvironment()
	if err != nil {
		return nil, err
	}
	s3, err := minio.NewCore(host, o)
	if err != nil {
		return nil, errors.New("S3_ENDPOINT is not a valid address: use https://host:port")
	}
	b := &bucket{s3: s3, name: name, prefix: prefix, checking: make(chan struct{}, 1), private: o.Secure || loopback(s3.EndpointURL().Hostname())}
	if err := b.exists(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// fromEnvironment reads the address and the credentials: S3_ENDPOINT (Amazon's when empty), AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION.
func fromEnvironment() (o *minio.Options, host string, err error) {
	access, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if access == "" || secret == "" {
		return nil, "", errors.New("files in a bucket need AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: set both")
	}
	o = &minio.Options{
		Creds:      credentials.NewStaticV4(access, secret, os.Getenv("AWS_SESSION_TOKEN")),
		Region:     os.Getenv("AWS_REGION"),
		Transport:  transport(),
		MaxRetries: 2, // for short disturbances; the engine retries longer ones
	}
	host, err = endpoint(os.Getenv("S3_ENDPOINT"), o)
	return o, host, err
}

// endpoint parses the address. For servers other than Amazon's, the bucket is part of the path. The connection is unencrypted only if the address begins with http:// or,
// without a scheme, is on this machine.
func endpoint(address string, o *minio.Options) (host string, err error) {
	if address == "" {
		o.Secure = true
		return "s3.amazonaws.com", nil
	}
	scheme, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		scheme, rest = "https", address
	}
	u, err := url.Parse("//" + rest)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || scheme != "http" && scheme != "https" {
		return "", errors.New("S3_ENDPOINT is not a valid address: use https://host:port, without a path and without keys in it")
	}
	o.BucketLookup = minio.BucketLookupPath
	o.Secure = scheme == "https" && (hasScheme || !loopback(u.Hostname()))
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	return u.Host, nil
}

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.ResponseHeaderTimeout = time.Minute
	t.DisableCompression = true // files must arrive unchanged
	return t
}

// A kindError is an error with the kinds by which errors.Is finds it. The kinds are not part of its text.
type kindError struct {
	error
	kinds []error
}

func (e kindError) Unwrap() error { return e.error }

func (e kindError) Is(target error) bool { return slices.Contains(e.kinds, target) }

// bucketError describes an error of the object storage and what to do. Of the storage's answer it contains only the code: the rest may contain keys and signatures.
func bucketError(doing string, err error) error {
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case !answered:
		why, kinds := reason(err), []error{ErrUnreachable}
		if errors.Is(why, errLate) {
			kinds = append(kinds, ErrTimeout)
		}
		return kindError{fmt.Errorf("%s: the storage cannot be reached or closed the connection: check that it runs, and S3_ENDPOINT (%w)", doing, why), kinds}
	case answer.Code == minio.NoSuchBucket:
		return fmt.Errorf("%s: %w", doing, ErrNoBucket)
	case answer.StatusCode == http.StatusNotFound && answer.Code != minio.NoSuchUpload:
		return ErrNotFound
	case answer.StatusCode == http.StatusInsufficientStorage, answer.Code == "XMinioStorageFull", answer.Code == "QuotaExceeded":
		return fmt.Errorf("%s: %w: free space in the storage, or raise the quota", doing, ErrFull)
	}
	code := answer.Code
	if !answerCode.MatchString(code) {
		code = "an error"
	}
	advice, kinds := "see the log of the storage", []error(nil)
	switch {
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		kinds = []error{ErrDenied}
		advice = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may read, write, list and delete in the bucket"
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusServiceUnavailable:
		kinds = []error{ErrBusy}
		advice = "it is busy; try again later"
	case answer.Code == "RequestTimeout", answer.StatusCode == http.StatusRequestTimeout:
		kinds = []error{ErrUnreachable, ErrTimeout}
	case answer.StatusCode/100 == 4 && answer.Code != minio.NoSuchUpload: // that is an upload that was deleted while it was made: another attempt can succeed
		kinds = []error{ErrRefused}
	}
	return kindError{fmt.Errorf("%s: the storage answered %s (HTTP %d): %s", doing, code, answer.StatusCode, advice), kinds}
}

var errLate = errors.New("it did not answer in time")

// reason returns why a server could not be reached, without addresses, which could contain the names of files.
func reason(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	if wait, ok := errors.AsType[net.Error](err); ok && wait.Timeout() {
		return errLate
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New("its host name is unknown")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errors.New("its certificate is not trusted")
	}
	return errors.New("the connection was lost")
}
