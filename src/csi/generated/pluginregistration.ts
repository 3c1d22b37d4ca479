// Generated from proto/pluginregistration.proto by tools/proto/generate.ts: every message as it is received.

export interface RegistrationRpcs {
  GetInfo: { request: InfoRequest; response: PluginInfo };
  NotifyRegistrationStatus: { request: RegistrationStatus; response: RegistrationStatusResponse };
}

export interface InfoRequest {}

export interface PluginInfo {
  type: string;
  name: string;
  endpoint: string;
  supportedVersions: string[];
}

export interface RegistrationStatus {
  pluginRegistered: boolean;
  error: string;
}

export interface RegistrationStatusResponse {}
