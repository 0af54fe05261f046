//go:build race

package httpapi_test

// raceDetector says whether the tests run under the race detector.
const raceDetector = true
