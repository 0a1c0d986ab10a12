{{- /* config.yaml: what values of the chart say, over .Values.config. A key that has a value
       of its own is refused there, so that each setting has one place. */ -}}
{{- define "lutra.config" -}}
{{- include "lutra.check" . -}}
{{- $v := .Values -}}
{{- $config := deepCopy $v.config -}}
{{- /* Helm reads YAML 1.1, to which the n of search.n is false. */ -}}
{{- $search := get $config "search" | default dict -}}
{{- if and (kindIs "map" $search) (hasKey $search "false") -}}
{{- $_ := set $search "n" (get $search "false") -}}
{{- $_ := unset $search "false" -}}
{{- end -}}
{{- range $key, $value := dict
      "models" "models"
      "server.addr" "port"
      "server.request_timeout" "requestTimeoutSeconds"
      "server.lame_duck" "drain.lameDuckSeconds"
      "server.drain_timeout" "drain.timeoutSeconds"
      "server.api_keys" "apiKeys"
      "server.api_keys_file" "apiKeys"
      "server.tls_cert" "tls.existingSecret"
      "server.tls_key" "tls.existingSecret"
      "kv.events" "kvEvents"
      "kv.replay" "kvEvents.replayPort"
      "search.workers" "searchWorkers" -}}
{{- $parts := splitList "." $key -}}
{{- $section := $config -}}
{{- if eq (len $parts) 2 -}}{{- $section = get $config (first $parts) | default dict -}}{{- end -}}
{{- if not (kindIs "map" $section) -}}
{{- fail (printf "config.%s: want keys with values" (first $parts)) -}}
{{- end -}}
{{- if hasKey $section (last $parts) -}}
{{- fail (printf "config.%s: set %s, from which the chart writes it" $key $value) -}}
{{- end -}}
{{- end -}}
{{- $server := dict
      "addr" (printf ":%d" (int $v.port))
      "request_timeout" (printf "%ds" (int $v.requestTimeoutSeconds))
      "lame_duck" (printf "%ds" (int $v.drain.lameDuckSeconds))
      "drain_timeout" (printf "%ss" (include "lutra.drainSeconds" .)) -}}
{{- if include "lutra.keysSecret" . -}}
{{- $_ := set $server "api_keys_file" (printf "/etc/lutra/keys/%s" $v.apiKeys.secretKey) -}}
{{- end -}}
{{- if $v.tls.existingSecret -}}
{{- $_ := set $server "tls_cert" "/etc/lutra/tls/tls.crt" -}}
{{- $_ := set $server "tls_key" "/etc/lutra/tls/tls.key" -}}
{{- end -}}
{{- $own := dict "server" $server -}}
{{- if $v.models -}}{{- $_ := set $own "models" $v.models -}}{{- end -}}
{{- if $v.kvEvents.enabled -}}
{{- $kv := dict "events" ($v.kvEvents.connect | default (printf "tcp://*:%d" (int $v.kvEvents.port))) -}}
{{- if $v.kvEvents.replayPort -}}
{{- $_ := set $kv "replay" (printf "tcp://*:%d" (int $v.kvEvents.replayPort)) -}}
{{- end -}}
{{- $_ := set $own "kv" $kv -}}
{{- end -}}
{{- if $v.searchWorkers.enabled -}}
{{- $self := printf "dns+%s://%s.%s.svc:%d" (include "lutra.scheme" .) (include "lutra.headless" .) .Release.Namespace (int $v.port) -}}
{{- $_ := set $own "search" (dict "workers" ($v.searchWorkers.addresses | default (list $self))) -}}
{{- end -}}
{{- mustMergeOverwrite $config (deepCopy $own) | toYaml -}}
{{- end -}}
