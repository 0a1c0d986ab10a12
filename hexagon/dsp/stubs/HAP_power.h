// See HAP_compute_res.h.
#pragma once
#include <stdint.h>
typedef enum { HAP_DCVS_VCORNER_DISABLE, HAP_DCVS_VCORNER_MAX = 9 } HAP_dcvs_voltage_corner_t;
typedef enum { HAP_DCVS_EXP_VCORNER_DISABLE, HAP_DCVS_EXP_VCORNER_MAX = 0xff } HAP_dcvs_extended_voltage_corner_t;
enum { HAP_DCVS_V2_PERFORMANCE_MODE = 2, HAP_POWER_COMPUTE_CLIENT_CLASS = 4, HAP_CLK_PERF_HIGH = 0 };
typedef struct {
  HAP_dcvs_voltage_corner_t min_corner, max_corner, target_corner;
} HAP_dcvs_v3_params_t;
typedef struct {
  enum { HAP_power_set_apptype = 2, HAP_power_set_HVX = 4, HAP_power_set_DCVS_v3 = 9, HAP_power_set_HMX = 10, HAP_power_set_HMX_v2 = 11 } type;
  union {
    int apptype;
    struct {
      uint8_t power_up;
    } hvx, hmx;
    struct {
      uint8_t set_dcvs_enable, dcvs_enable, dcvs_option, set_latency, set_core_params, set_bus_params, set_sleep_disable, sleep_disable;
      uint32_t latency;
      HAP_dcvs_v3_params_t core_params, bus_params;
    } dcvs_v3;
    struct {
      uint8_t set_power, power_up, set_clock;
      HAP_dcvs_extended_voltage_corner_t target_corner, min_corner, max_corner;
      uint32_t perf_mode;
    } hmx_v2;
  };
} HAP_power_request_t;
int HAP_power_set(void *client, HAP_power_request_t *request);
