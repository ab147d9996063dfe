
-- Returns {ok, ..., head, marker, held}.

local err = check()
if err then
  return err
end
redis.call('HSET', ledger, 'marker', this_run())
redis.call('HSETNX', ledger, 'head', '0 0 0 0')
redis.call('SET', fence, 'redlock')
return report('ok', '', '', '')
