
-- ARGV replica, nonce, attempt, token
-- Returns {ok, ...} or {refused, ...}.

local err = check()
if err then
  return err
end
local us = now_us()
local token, replica, nonce, attempt = holder()
local counter = tonumber(redis.call('HGET', votes, 'counter') or '0')
local wanted = tonumber(ARGV[4])
local tried = attempt == ARGV[3] or attempt == '-' and token == ARGV[4]
if not token or replica ~= ARGV[1] or nonce ~= ARGV[2] or not tried then
  return answer('refused', us)
end
if counter > wanted or counter == wanted and token ~= ARGV[4] then
  return answer('refused', us)
end
hold(ARGV[4], replica, nonce, attempt, math.floor(us / 1000) + redis.call('PTTL', lease))
redis.call('HSET', votes, 'counter', ARGV[4])
redis.call('PEXPIRE', votes, FENCE_MS + redis.call('PTTL', lease))
return answer('ok', us)
